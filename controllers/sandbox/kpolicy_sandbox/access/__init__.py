"""Who somebody is and what they may do: tokens, certificates, impersonation, RBAC and the reviews that answer questions about it."""
