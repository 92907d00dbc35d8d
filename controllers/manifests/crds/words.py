"""What fields mean, one line each: the texts that `kubectl explain` shows.

Keyed by the field's name alone, because a name means the same wherever it stands.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "admission": "Whether the rules are applied to admission requests.",
        "all": "Entries that must all hold.",
        "allowExistingViolations": "Whether objects that violated the rule before may be updated.",
        "any": "Entries of which one must hold.",
        "anyPattern": "Patterns of which the object must satisfy one.",
        "apiCall": "A call to the API server or to a service, whose answer becomes the variable.",
        "applyRules": "Whether all matching rules are applied, or only the first.",
        "attestations": "Statements about an image that must be signed and meet conditions.",
        "attestors": "Who must have signed.",
        "autogen": "Rules that were derived for the controllers of Pods.",
        "background": "Whether the rules are applied to existing objects, too.",
        "celPreconditions": "CEL expressions that must hold for the rule to be applied.",
        "clone": "The object to copy.",
        "cloneList": "The objects to copy, by kind and labels.",
        "clusterRoles": "ClusterRoles of which the requester must have one.",
        "conditions": "Conditions that must hold.",
        "configMap": "A ConfigMap whose data becomes the variable.",
        "context": "Variables for the rule, loaded when something needs them.",
        "data": "The content of the object to make.",
        "deletionPropagationPolicy": "What happens to the dependents of a deleted object.",
        "deny": "Conditions under which the request is refused.",
        "emitWarning": "Whether failures of audit rules are shown to the requester as warnings.",
        "exceptions": "The policies and rules that do not apply.",
        "exclude": "What the rule is not applied to.",
        "failureAction": "Whether a failure is only reported (Audit) or refused (Enforce).",
        "failureActionOverrides": "Other actions for some namespaces.",
        "failurePolicy": "Whether a request is refused when it cannot be judged.",
        "foreach": "The same for each element of a list.",
        "generate": "Objects that the rule makes.",
        "generateExisting": "Whether the rule is applied to triggers that exist already.",
        "globalReference": "A GlobalContextEntry whose data becomes the variable.",
        "imageExtractors": "Where other kinds than Pods hold images.",
        "imageReferences": "The images that are verified; wildcards are allowed.",
        "imageRegistry": "Registry data of an image, which becomes the variable.",
        "kinds": "Kinds, as `Kind`, `group/version/Kind` or `Kind/subresource`; wildcards are allowed.",
        "manifests": "Signatures that the object itself must carry.",
        "match": "What the rule is applied to.",
        "message": "What the requester reads; variables are replaced.",
        "mutate": "How the rule changes objects.",
        "mutateExistingOnPolicyUpdate": "Whether targets are changed when the policy changes, too.",
        "namespaceSelector": "Labels that the object's namespace must have.",
        "operations": "The operations that count; all when there are none.",
        "orphanDownstreamOnPolicyDelete": "Whether generated objects stay when the policy goes.",
        "patchStrategicMerge": "What is merged into the object.",
        "patchesJson6902": "A JSON patch, as YAML or JSON text.",
        "pattern": "What the object must look like.",
        "podSecurity": "A level of the Pod Security Standards, with exclusions.",
        "policyName": "A policy: `name` of a ClusterPolicy, `namespace/name` of a Policy.",
        "preconditions": "Conditions under which the rule is applied.",
        "reportProperties": "Properties that the rule adds to its rows in reports.",
        "resources": "What objects are meant, by kind, name, namespace, labels and operation.",
        "roles": "Roles (`namespace:name`) of which the requester must have one.",
        "ruleNames": "Names of rules; wildcards are allowed.",
        "rules": "What is validated, changed, made or verified, rule by rule.",
        "schedule": "When the policy runs, in cron format, in UTC.",
        "selector": "Labels that the objects must have.",
        "skipBackgroundRequests": "Whether requests of the engine's own loops are passed over.",
        "subjects": "Users, groups and service accounts that are meant.",
        "synchronize": "Whether made objects follow their rule and source, and go with their trigger.",
        "targets": "Existing objects that are changed when the rule's match is triggered.",
        "validate": "What the rule demands of objects.",
        "validationFailureAction": "The action of rules that name none.",
        "validationFailureActionOverrides": "Other actions for some namespaces.",
        "variable": "A value or expression, which becomes the variable.",
        "verifyImages": "Signatures and attestations that images must have.",
        "webhookConfiguration": "How the API server asks about this policy.",
    }
)
