"""The kinds that the sandbox serves without any CRD: one line each.

Columns: group/version (core is `v1`), plural, Kind, short names, categories (comma separated, `-` for none), flags: `N` namespaced, `S` status
subresource, `C` scale subresource, `R` review (create only, nothing is stored). The type in `types.json.xz` has the Kind's name.
"""

BUILTIN = """\
v1                              namespaces                       Namespace                       ns       -    S
v1                              nodes                            Node                            no       -    S
v1                              persistentvolumes                PersistentVolume                pv       -    S
v1                              pods                             Pod                             po       all  NS
v1                              services                         Service                         svc      all  NS
v1                              configmaps                       ConfigMap                       cm       -    N
v1                              secrets                          Secret                          -        -    N
v1                              serviceaccounts                  ServiceAccount                  sa       -    N
v1                              endpoints                        Endpoints                       ep       -    N
v1                              events                           Event                           ev       -    N
v1                              limitranges                      LimitRange                      limits   -    N
v1                              resourcequotas                   ResourceQuota                   quota    -    NS
v1                              persistentvolumeclaims           PersistentVolumeClaim           pvc      -    NS
v1                              replicationcontrollers           ReplicationController           rc       all  NSC
v1                              podtemplates                     PodTemplate                     -        -    N
apps/v1                         deployments                      Deployment                      deploy   all  NSC
apps/v1                         replicasets                      ReplicaSet                      rs       all  NSC
apps/v1                         statefulsets                     StatefulSet                     sts      all  NSC
apps/v1                         daemonsets                       DaemonSet                       ds       all  NS
apps/v1                         controllerrevisions              ControllerRevision              -        -    N
batch/v1                        jobs                             Job                             -        all  NS
batch/v1                        cronjobs                         CronJob                         cj       all  NS
rbac.authorization.k8s.io/v1    roles                            Role                            -        -    N
rbac.authorization.k8s.io/v1    rolebindings                     RoleBinding                     -        -    N
rbac.authorization.k8s.io/v1    clusterroles                     ClusterRole                     -        -    -
rbac.authorization.k8s.io/v1    clusterrolebindings              ClusterRoleBinding              -        -    -
networking.k8s.io/v1            networkpolicies                  NetworkPolicy                   netpol   -    N
networking.k8s.io/v1            ingresses                        Ingress                         ing      -    NS
networking.k8s.io/v1            ingressclasses                   IngressClass                    -        -    -
policy/v1                       poddisruptionbudgets             PodDisruptionBudget             pdb      -    NS
coordination.k8s.io/v1          leases                           Lease                           -        -    N
events.k8s.io/v1                events                           Event                           ev       -    N
discovery.k8s.io/v1             endpointslices                   EndpointSlice                   -        -    N
scheduling.k8s.io/v1            priorityclasses                  PriorityClass                   pc       -    -
storage.k8s.io/v1               storageclasses                   StorageClass                    sc       -    -
autoscaling/v2                  horizontalpodautoscalers         HorizontalPodAutoscaler         hpa      all  NS
admissionregistration.k8s.io/v1 mutatingwebhookconfigurations    MutatingWebhookConfiguration    -        api-extensions -
admissionregistration.k8s.io/v1 validatingwebhookconfigurations  ValidatingWebhookConfiguration  -        api-extensions -
admissionregistration.k8s.io/v1 validatingadmissionpolicies      ValidatingAdmissionPolicy       -        api-extensions S
admissionregistration.k8s.io/v1 validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding -      api-extensions -
admissionregistration.k8s.io/v1 mutatingadmissionpolicies        MutatingAdmissionPolicy         -        api-extensions -
admissionregistration.k8s.io/v1 mutatingadmissionpolicybindings  MutatingAdmissionPolicyBinding  -        api-extensions -
apiextensions.k8s.io/v1         customresourcedefinitions        CustomResourceDefinition        crd,crds api-extensions S
authentication.k8s.io/v1        tokenreviews                     TokenReview                     -        -    R
authentication.k8s.io/v1        selfsubjectreviews               SelfSubjectReview               -        -    R
authorization.k8s.io/v1         subjectaccessreviews             SubjectAccessReview             -        -    R
authorization.k8s.io/v1         selfsubjectaccessreviews         SelfSubjectAccessReview         -        -    R
authorization.k8s.io/v1         localsubjectaccessreviews        LocalSubjectAccessReview        -        -    NR
authorization.k8s.io/v1         selfsubjectrulesreviews          SelfSubjectRulesReview          -        -    R
"""

# further subresources, as path below the object: kind of the body, group/version of that kind
SUBRESOURCES = {
    "v1/pods": {
        "eviction": "policy/v1 Eviction",
        "ephemeralcontainers": "v1 Pod",
        "log": "v1 Pod",
        "exec": "v1 PodExecOptions",
        "attach": "v1 PodAttachOptions",
        "portforward": "v1 PodPortForwardOptions",
        "proxy": "v1 PodProxyOptions",
    },
    "v1/serviceaccounts": {"token": "authentication.k8s.io/v1 TokenRequest"},
}
