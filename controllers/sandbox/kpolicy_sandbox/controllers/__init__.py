"""What makes the sandbox look alive: controllers for namespaces, owners, workloads, roles and Pods that only look as if they ran."""
