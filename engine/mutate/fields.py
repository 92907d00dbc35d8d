"""The fields of the built-in kinds that policies are about, and what each holds: data, not code.

Taken from Kubernetes' published OpenAPI document. `TYPES` describes one type after the other, `NAME: WHAT field field; WHAT field`.
WHAT is `s` a text, `n` a number, `b` a truth value, `.` a scalar of any kind, `*` anything, or the name of another type; `{}` before
it makes a map of such values, `[key,key]` a list whose elements are told apart by keys, `[]` a set, `[~]` a list that only changes as
a whole. `~` before a type's name or a map says that it only changes as a whole, too.
"""

from __future__ import annotations

from typing import Final

KINDS: Final = {
    "apps/v1": "DaemonSet Deployment ReplicaSet StatefulSet",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "batch/v1": "CronJob Job",
    "networking.k8s.io/v1": "Ingress IngressClass NetworkPolicy",
    "policy/v1": "PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "scheduling.k8s.io/v1": "PriorityClass",
    "storage.k8s.io/v1": "StorageClass",
    "v1": "ConfigMap Endpoints LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount",
}
"""The kinds described here by their apiVersion; each is a type of the same name."""

TYPES: Final = """
AWSElasticBlockStoreVolumeSource: b readOnly; n partition; s fsType volumeID Affinity: NodeAffinity nodeAffinity; PodAffinity
podAffinity; PodAntiAffinity podAntiAffinity AggregationRule: [~]LabelSelector clusterRoleSelectors AppArmorProfile: s localhostProfile
type AttachedVolume: s devicePath name AzureDiskVolumeSource: b readOnly; s cachingMode diskName diskURI fsType kind
AzureFilePersistentVolumeSource: b readOnly; s secretName secretNamespace shareName AzureFileVolumeSource: b readOnly; s secretName
shareName CSIPersistentVolumeSource: SecretReference controllerExpandSecretRef controllerPublishSecretRef nodeExpandSecretRef
nodePublishSecretRef nodeStageSecretRef; b readOnly; s driver fsType volumeHandle; {}s volumeAttributes CSIVolumeSource:
LocalObjectReference nodePublishSecretRef; b readOnly; s driver fsType; {}s volumeAttributes Capabilities: [~]s add drop
CephFSPersistentVolumeSource: SecretReference secretRef; [~]s monitors; b readOnly; s path secretFile user CephFSVolumeSource:
LocalObjectReference secretRef; [~]s monitors; b readOnly; s path secretFile user CinderPersistentVolumeSource: SecretReference
secretRef; b readOnly; s fsType volumeID CinderVolumeSource: LocalObjectReference secretRef; b readOnly; s fsType volumeID
ClientIPConfig: n timeoutSeconds ClusterRole: AggregationRule aggregationRule; ObjectMeta metadata; [~]PolicyRule rules; s apiVersion
kind ClusterRoleBinding: ObjectMeta metadata; RoleRef roleRef; [~]Subject subjects; s apiVersion kind ClusterTrustBundleProjection:
LabelSelector labelSelector; b optional; s name path signerName Condition: . lastTransitionTime; n observedGeneration; s message reason
status type ConfigMap: ObjectMeta metadata; b immutable; s apiVersion kind; {}s binaryData data ConfigMapEnvSource: b optional; s name
~ConfigMapKeySelector: b optional; s key name ConfigMapNodeConfigSource: s kubeletConfigKey name namespace resourceVersion uid
ConfigMapProjection: [~]KeyToPath items; b optional; s name ConfigMapVolumeSource: [~]KeyToPath items; b optional; n defaultMode; s name
Container: Lifecycle lifecycle; Probe livenessProbe readinessProbe startupProbe; ResourceRequirements resources; SecurityContext
securityContext; [containerPort,protocol]ContainerPort ports; [devicePath]VolumeDevice volumeDevices; [mountPath]VolumeMount
volumeMounts; [name]EnvVar env; [~]ContainerResizePolicy resizePolicy; [~]ContainerRestartRule restartPolicyRules; [~]EnvFromSource
envFrom; [~]s args command; b stdin stdinOnce tty; s image imagePullPolicy name restartPolicy terminationMessagePath
terminationMessagePolicy workingDir ContainerExtendedResourceRequest: s containerName requestName resourceName ContainerImage: [~]s
names; n sizeBytes ContainerPort: n containerPort hostPort; s hostIP name protocol ContainerResizePolicy: s resourceName restartPolicy
ContainerResourceMetricSource: MetricTarget target; s container name ContainerResourceMetricStatus: MetricValueStatus current; s
container name ContainerRestartRule: ContainerRestartRuleOnExitCodes exitCodes; s action ContainerRestartRuleOnExitCodes: []n values; s
operator ContainerState: ContainerStateRunning running; ContainerStateTerminated terminated; ContainerStateWaiting waiting
ContainerStateRunning: . startedAt ContainerStateTerminated: . finishedAt startedAt; n exitCode signal; s containerID message reason
ContainerStateWaiting: s message reason ContainerStatus: ContainerState lastState state; ContainerUser user; ResourceRequirements
resources; [mountPath]VolumeMountStatus volumeMounts; [name]ResourceStatus allocatedResourcesStatus; b ready started; n restartCount; s
containerID image imageID name stopSignal; {}* allocatedResources ContainerUser: LinuxContainerUser linux CronJob: CronJobSpec spec;
CronJobStatus status; ObjectMeta metadata; s apiVersion kind CronJobSpec: JobTemplateSpec jobTemplate; b suspend; n
failedJobsHistoryLimit startingDeadlineSeconds successfulJobsHistoryLimit; s concurrencyPolicy schedule timeZone CronJobStatus: .
lastScheduleTime lastSuccessfulTime; [~]ObjectReference active CrossVersionObjectReference: s apiVersion kind name DaemonEndpoint: n
Port DaemonSet: DaemonSetSpec spec; DaemonSetStatus status; ObjectMeta metadata; s apiVersion kind DaemonSetCondition: .
lastTransitionTime; s message reason status type DaemonSetSpec: DaemonSetUpdateStrategy updateStrategy; LabelSelector selector;
PodTemplateSpec template; n minReadySeconds revisionHistoryLimit DaemonSetStatus: [type]DaemonSetCondition conditions; n collisionCount
currentNumberScheduled desiredNumberScheduled numberAvailable numberMisscheduled numberReady numberUnavailable observedGeneration
updatedNumberScheduled DaemonSetUpdateStrategy: RollingUpdateDaemonSet rollingUpdate; s type Deployment: DeploymentSpec spec;
DeploymentStatus status; ObjectMeta metadata; s apiVersion kind DeploymentCondition: . lastTransitionTime lastUpdateTime; s message
reason status type DeploymentSpec: DeploymentStrategy strategy; LabelSelector selector; PodTemplateSpec template; b paused; n
minReadySeconds progressDeadlineSeconds replicas revisionHistoryLimit DeploymentStatus: [type]DeploymentCondition conditions; n
availableReplicas collisionCount observedGeneration readyReplicas replicas terminatingReplicas unavailableReplicas updatedReplicas
DeploymentStrategy: RollingUpdateDeployment rollingUpdate; s type DownwardAPIProjection: [~]DownwardAPIVolumeFile items
DownwardAPIVolumeFile: ObjectFieldSelector fieldRef; ResourceFieldSelector resourceFieldRef; n mode; s path DownwardAPIVolumeSource:
[~]DownwardAPIVolumeFile items; n defaultMode EmptyDirVolumeSource: * sizeLimit; s medium ~EndpointAddress: ObjectReference targetRef; s
hostname ip nodeName ~EndpointPort: n port; s appProtocol name protocol EndpointSubset: [~]EndpointAddress addresses notReadyAddresses;
[~]EndpointPort ports Endpoints: ObjectMeta metadata; [~]EndpointSubset subsets; s apiVersion kind EnvFromSource: ConfigMapEnvSource
configMapRef; SecretEnvSource secretRef; s prefix EnvVar: EnvVarSource valueFrom; s name value EnvVarSource: ConfigMapKeySelector
configMapKeyRef; FileKeySelector fileKeyRef; ObjectFieldSelector fieldRef; ResourceFieldSelector resourceFieldRef; SecretKeySelector
secretKeyRef EphemeralContainer: Lifecycle lifecycle; Probe livenessProbe readinessProbe startupProbe; ResourceRequirements resources;
SecurityContext securityContext; [containerPort,protocol]ContainerPort ports; [devicePath]VolumeDevice volumeDevices;
[mountPath]VolumeMount volumeMounts; [name]EnvVar env; [~]ContainerResizePolicy resizePolicy; [~]ContainerRestartRule
restartPolicyRules; [~]EnvFromSource envFrom; [~]s args command; b stdin stdinOnce tty; s image imagePullPolicy name restartPolicy
targetContainerName terminationMessagePath terminationMessagePolicy workingDir EphemeralVolumeSource: PersistentVolumeClaimTemplate
volumeClaimTemplate ExecAction: [~]s command ExternalMetricSource: MetricIdentifier metric; MetricTarget target ExternalMetricStatus:
MetricIdentifier metric; MetricValueStatus current FCVolumeSource: [~]s targetWWNs wwids; b readOnly; n lun; s fsType ~FileKeySelector:
b optional; s key path volumeName FlexPersistentVolumeSource: SecretReference secretRef; b readOnly; s driver fsType; {}s options
FlexVolumeSource: LocalObjectReference secretRef; b readOnly; s driver fsType; {}s options FlockerVolumeSource: s datasetName
datasetUUID GCEPersistentDiskVolumeSource: b readOnly; n partition; s fsType pdName GRPCAction: n port; s service GitRepoVolumeSource: s
directory repository revision GlusterfsPersistentVolumeSource: b readOnly; s endpoints endpointsNamespace path GlusterfsVolumeSource: b
readOnly; s endpoints path HPAScalingPolicy: n periodSeconds value; s type HPAScalingRules: * tolerance; [~]HPAScalingPolicy policies; n
stabilizationWindowSeconds; s selectPolicy HTTPGetAction: * port; [~]HTTPHeader httpHeaders; s host path scheme HTTPHeader: s name value
HTTPIngressPath: IngressBackend backend; s path pathType HTTPIngressRuleValue: [~]HTTPIngressPath paths HorizontalPodAutoscaler:
HorizontalPodAutoscalerSpec spec; HorizontalPodAutoscalerStatus status; ObjectMeta metadata; s apiVersion kind
HorizontalPodAutoscalerBehavior: HPAScalingRules scaleDown scaleUp HorizontalPodAutoscalerCondition: . lastTransitionTime; s message
reason status type HorizontalPodAutoscalerSpec: CrossVersionObjectReference scaleTargetRef; HorizontalPodAutoscalerBehavior behavior;
[~]MetricSpec metrics; n maxReplicas minReplicas HorizontalPodAutoscalerStatus: . lastScaleTime; [type]HorizontalPodAutoscalerCondition
conditions; [~]MetricStatus currentMetrics; n currentReplicas desiredReplicas observedGeneration HostAlias: [~]s hostnames; s ip HostIP:
s ip HostPathVolumeSource: s path type IPBlock: [~]s except; s cidr ISCSIPersistentVolumeSource: SecretReference secretRef; [~]s
portals; b chapAuthDiscovery chapAuthSession readOnly; n lun; s fsType initiatorName iqn iscsiInterface targetPortal ISCSIVolumeSource:
LocalObjectReference secretRef; [~]s portals; b chapAuthDiscovery chapAuthSession readOnly; n lun; s fsType initiatorName iqn
iscsiInterface targetPortal ImageVolumeSource: s pullPolicy reference ImageVolumeStatus: s imageRef Ingress: IngressSpec spec;
IngressStatus status; ObjectMeta metadata; s apiVersion kind IngressBackend: IngressServiceBackend service; TypedLocalObjectReference
resource IngressClass: IngressClassSpec spec; ObjectMeta metadata; s apiVersion kind IngressClassParametersReference: s apiGroup kind
name namespace scope IngressClassSpec: IngressClassParametersReference parameters; s controller IngressLoadBalancerIngress:
[~]IngressPortStatus ports; s hostname ip IngressLoadBalancerStatus: [~]IngressLoadBalancerIngress ingress IngressPortStatus: n port; s
error protocol IngressRule: HTTPIngressRuleValue http; s host IngressServiceBackend: ServiceBackendPort port; s name IngressSpec:
IngressBackend defaultBackend; [~]IngressRule rules; [~]IngressTLS tls; s ingressClassName IngressStatus: IngressLoadBalancerStatus
loadBalancer IngressTLS: [~]s hosts; s secretName Job: JobSpec spec; JobStatus status; ObjectMeta metadata; s apiVersion kind
JobCondition: . lastProbeTime lastTransitionTime; s message reason status type JobSpec: LabelSelector selector; PodFailurePolicy
podFailurePolicy; PodTemplateSpec template; SuccessPolicy successPolicy; b manualSelector suspend; n activeDeadlineSeconds backoffLimit
backoffLimitPerIndex completions maxFailedIndexes parallelism ttlSecondsAfterFinished; s completionMode managedBy podReplacementPolicy
JobStatus: . completionTime startTime; UncountedTerminatedPods uncountedTerminatedPods; [~]JobCondition conditions; n active failed
ready succeeded terminating; s completedIndexes failedIndexes JobTemplateSpec: JobSpec spec; ObjectMeta metadata KeyToPath: n mode; s
key path ~LabelSelector: [~]LabelSelectorRequirement matchExpressions; {}s matchLabels LabelSelectorRequirement: [~]s values; s key
operator Lifecycle: LifecycleHandler postStart preStop; s stopSignal LifecycleHandler: ExecAction exec; HTTPGetAction httpGet;
SleepAction sleep; TCPSocketAction tcpSocket LimitRange: LimitRangeSpec spec; ObjectMeta metadata; s apiVersion kind LimitRangeItem: s
type; {}* default defaultRequest max maxLimitRequestRatio min LimitRangeSpec: [~]LimitRangeItem limits LinuxContainerUser: [~]n
supplementalGroups; n gid uid LoadBalancerIngress: [~]PortStatus ports; s hostname ip ipMode LoadBalancerStatus: [~]LoadBalancerIngress
ingress ~LocalObjectReference: s name LocalVolumeSource: s fsType path ManagedFieldsEntry: * fieldsV1; . time; s apiVersion fieldsType
manager operation subresource MetricIdentifier: LabelSelector selector; s name MetricSpec: ContainerResourceMetricSource
containerResource; ExternalMetricSource external; ObjectMetricSource object; PodsMetricSource pods; ResourceMetricSource resource; s
type MetricStatus: ContainerResourceMetricStatus containerResource; ExternalMetricStatus external; ObjectMetricStatus object;
PodsMetricStatus pods; ResourceMetricStatus resource; s type MetricTarget: * averageValue value; n averageUtilization; s type
MetricValueStatus: * averageValue value; n averageUtilization ModifyVolumeStatus: s status targetVolumeAttributesClassName
NFSVolumeSource: b readOnly; s path server Namespace: NamespaceSpec spec; NamespaceStatus status; ObjectMeta metadata; s apiVersion kind
NamespaceCondition: . lastTransitionTime; s message reason status type NamespaceSpec: [~]s finalizers NamespaceStatus:
[type]NamespaceCondition conditions; s phase NetworkPolicy: NetworkPolicySpec spec; ObjectMeta metadata; s apiVersion kind
NetworkPolicyEgressRule: [~]NetworkPolicyPeer to; [~]NetworkPolicyPort ports NetworkPolicyIngressRule: [~]NetworkPolicyPeer from;
[~]NetworkPolicyPort ports NetworkPolicyPeer: IPBlock ipBlock; LabelSelector namespaceSelector podSelector NetworkPolicyPort: * port; n
endPort; s protocol NetworkPolicySpec: LabelSelector podSelector; [~]NetworkPolicyEgressRule egress; [~]NetworkPolicyIngressRule
ingress; [~]s policyTypes Node: NodeSpec spec; NodeStatus status; ObjectMeta metadata; s apiVersion kind NodeAddress: s address type
NodeAffinity: NodeSelector requiredDuringSchedulingIgnoredDuringExecution; [~]PreferredSchedulingTerm
preferredDuringSchedulingIgnoredDuringExecution NodeAllocatableResourceClaimStatus: []s containers; s resourceClaimName; {}* resources
NodeCondition: . lastHeartbeatTime lastTransitionTime; s message reason status type NodeConfigSource: ConfigMapNodeConfigSource
configMap NodeConfigStatus: NodeConfigSource active assigned lastKnownGood; s error NodeDaemonEndpoints: DaemonEndpoint kubeletEndpoint
NodeFeatures: b supplementalGroupsPolicy NodeRuntimeHandler: NodeRuntimeHandlerFeatures features; s name NodeRuntimeHandlerFeatures: b
recursiveReadOnlyMounts userNamespaces ~NodeSelector: [~]NodeSelectorTerm nodeSelectorTerms NodeSelectorRequirement: [~]s values; s key
operator ~NodeSelectorTerm: [~]NodeSelectorRequirement matchExpressions matchFields NodeSpec: NodeConfigSource configSource; []s
podCIDRs; [~]Taint taints; b unschedulable; s externalID podCIDR providerID NodeStatus: NodeConfigStatus config; NodeDaemonEndpoints
daemonEndpoints; NodeFeatures features; NodeSystemInfo nodeInfo; [type]NodeAddress addresses; [type]NodeCondition conditions;
[~]AttachedVolume volumesAttached; [~]ContainerImage images; [~]NodeRuntimeHandler runtimeHandlers; [~]s declaredFeatures volumesInUse;
s phase; {}* allocatable capacity NodeSwapStatus: n capacity NodeSystemInfo: NodeSwapStatus swap; s architecture bootID
containerRuntimeVersion kernelVersion kubeProxyVersion kubeletVersion machineID operatingSystem osImage systemUUID ~ObjectFieldSelector:
s apiVersion fieldPath ObjectMeta: . creationTimestamp deletionTimestamp; []s finalizers; [uid]OwnerReference ownerReferences;
[~]ManagedFieldsEntry managedFields; n deletionGracePeriodSeconds generation; s generateName name namespace resourceVersion selfLink
uid; {}s annotations labels ObjectMetricSource: CrossVersionObjectReference describedObject; MetricIdentifier metric; MetricTarget
target ObjectMetricStatus: CrossVersionObjectReference describedObject; MetricIdentifier metric; MetricValueStatus current
~ObjectReference: s apiVersion fieldPath kind name namespace resourceVersion uid ~OwnerReference: b blockOwnerDeletion controller; s
apiVersion kind name uid PersistentVolume: ObjectMeta metadata; PersistentVolumeSpec spec; PersistentVolumeStatus status; s apiVersion
kind PersistentVolumeClaim: ObjectMeta metadata; PersistentVolumeClaimSpec spec; PersistentVolumeClaimStatus status; s apiVersion kind
PersistentVolumeClaimCondition: . lastProbeTime lastTransitionTime; s message reason status type PersistentVolumeClaimSpec:
LabelSelector selector; TypedLocalObjectReference dataSource; TypedObjectReference dataSourceRef; VolumeResourceRequirements resources;
[~]s accessModes; s storageClassName volumeAttributesClassName volumeMode volumeName PersistentVolumeClaimStatus: ModifyVolumeStatus
modifyVolumeStatus; [type]PersistentVolumeClaimCondition conditions; [~]s accessModes; s currentVolumeAttributesClassName phase; {}*
allocatedResources capacity; {}s allocatedResourceStatuses PersistentVolumeClaimTemplate: ObjectMeta metadata; PersistentVolumeClaimSpec
spec PersistentVolumeClaimVolumeSource: b readOnly; s claimName PersistentVolumeSpec: AWSElasticBlockStoreVolumeSource
awsElasticBlockStore; AzureDiskVolumeSource azureDisk; AzureFilePersistentVolumeSource azureFile; CSIPersistentVolumeSource csi;
CephFSPersistentVolumeSource cephfs; CinderPersistentVolumeSource cinder; FCVolumeSource fc; FlexPersistentVolumeSource flexVolume;
FlockerVolumeSource flocker; GCEPersistentDiskVolumeSource gcePersistentDisk; GlusterfsPersistentVolumeSource glusterfs;
HostPathVolumeSource hostPath; ISCSIPersistentVolumeSource iscsi; LocalVolumeSource local; NFSVolumeSource nfs; ObjectReference
claimRef; PhotonPersistentDiskVolumeSource photonPersistentDisk; PortworxVolumeSource portworxVolume; QuobyteVolumeSource quobyte;
RBDPersistentVolumeSource rbd; ScaleIOPersistentVolumeSource scaleIO; StorageOSPersistentVolumeSource storageos; VolumeNodeAffinity
nodeAffinity; VsphereVirtualDiskVolumeSource vsphereVolume; [~]s accessModes mountOptions; s persistentVolumeReclaimPolicy
storageClassName volumeAttributesClassName volumeMode; {}* capacity PersistentVolumeStatus: . lastPhaseTransitionTime; s message phase
reason PhotonPersistentDiskVolumeSource: s fsType pdID Pod: ObjectMeta metadata; PodSpec spec; PodStatus status; s apiVersion kind
PodAffinity: [~]PodAffinityTerm requiredDuringSchedulingIgnoredDuringExecution; [~]WeightedPodAffinityTerm
preferredDuringSchedulingIgnoredDuringExecution PodAffinityTerm: LabelSelector labelSelector namespaceSelector; [~]s matchLabelKeys
mismatchLabelKeys namespaces; s topologyKey PodAntiAffinity: [~]PodAffinityTerm requiredDuringSchedulingIgnoredDuringExecution;
[~]WeightedPodAffinityTerm preferredDuringSchedulingIgnoredDuringExecution PodCertificateProjection: n maxExpirationSeconds; s
certificateChainPath credentialBundlePath keyPath keyType signerName; {}s userAnnotations PodCondition: . lastProbeTime
lastTransitionTime; n observedGeneration; s message reason status type PodDNSConfig: [~]PodDNSConfigOption options; [~]s nameservers
searches PodDNSConfigOption: s name value PodDisruptionBudget: ObjectMeta metadata; PodDisruptionBudgetSpec spec;
PodDisruptionBudgetStatus status; s apiVersion kind PodDisruptionBudgetSpec: * maxUnavailable minAvailable; LabelSelector selector; s
unhealthyPodEvictionPolicy PodDisruptionBudgetStatus: [type]Condition conditions; n currentHealthy desiredHealthy disruptionsAllowed
expectedPods observedGeneration; {}. disruptedPods PodExtendedResourceClaimStatus: [~]ContainerExtendedResourceRequest requestMappings;
s resourceClaimName PodFailurePolicy: [~]PodFailurePolicyRule rules PodFailurePolicyOnExitCodesRequirement: []n values; s containerName
operator PodFailurePolicyOnPodConditionsPattern: s status type PodFailurePolicyRule: PodFailurePolicyOnExitCodesRequirement onExitCodes;
[~]PodFailurePolicyOnPodConditionsPattern onPodConditions; s action PodIP: s ip PodOS: s name PodReadinessGate: s conditionType
PodResourceClaim: s name resourceClaimName resourceClaimTemplateName PodResourceClaimStatus: s name resourceClaimName PodSchedulingGate:
s name PodSchedulingGroup: s podGroupName PodSecurityContext: AppArmorProfile appArmorProfile; SELinuxOptions seLinuxOptions;
SeccompProfile seccompProfile; WindowsSecurityContextOptions windowsOptions; [~]Sysctl sysctls; [~]n supplementalGroups; b runAsNonRoot;
n fsGroup runAsGroup runAsUser; s fsGroupChangePolicy seLinuxChangePolicy supplementalGroupsPolicy PodSpec: Affinity affinity;
PodDNSConfig dnsConfig; PodOS os; PodSchedulingGroup schedulingGroup; PodSecurityContext securityContext; ResourceRequirements
resources; [ip]HostAlias hostAliases; [name]Container containers initContainers; [name]EphemeralContainer ephemeralContainers;
[name]LocalObjectReference imagePullSecrets; [name]PodResourceClaim resourceClaims; [name]PodSchedulingGate schedulingGates;
[name]Volume volumes; [topologyKey,whenUnsatisfiable]TopologySpreadConstraint topologySpreadConstraints; [~]PodReadinessGate
readinessGates; [~]Toleration tolerations; b automountServiceAccountToken enableServiceLinks hostIPC hostNetwork hostPID hostUsers
setHostnameAsFQDN shareProcessNamespace; n activeDeadlineSeconds priority terminationGracePeriodSeconds; s dnsPolicy hostname
hostnameOverride nodeName preemptionPolicy priorityClassName restartPolicy runtimeClassName schedulerName serviceAccount
serviceAccountName subdomain; {}* overhead; ~{}s nodeSelector PodStatus: . startTime; PodExtendedResourceClaimStatus
extendedResourceClaimStatus; ResourceRequirements resources; [ip]PodIP podIPs; [name]PodResourceClaimStatus resourceClaimStatuses;
[type]PodCondition conditions; [~]ContainerStatus containerStatuses ephemeralContainerStatuses initContainerStatuses; [~]HostIP hostIPs;
[~]NodeAllocatableResourceClaimStatus nodeAllocatableResourceClaimStatuses; n observedGeneration; s hostIP message nominatedNodeName
phase podIP qosClass reason resize; {}* allocatedResources PodTemplate: ObjectMeta metadata; PodTemplateSpec template; s apiVersion kind
PodTemplateSpec: ObjectMeta metadata; PodSpec spec PodsMetricSource: MetricIdentifier metric; MetricTarget target PodsMetricStatus:
MetricIdentifier metric; MetricValueStatus current PolicyRule: [~]s apiGroups nonResourceURLs resourceNames resources verbs PortStatus:
n port; s error protocol PortworxVolumeSource: b readOnly; s fsType volumeID PreferredSchedulingTerm: NodeSelectorTerm preference; n
weight PriorityClass: ObjectMeta metadata; b globalDefault; n value; s apiVersion description kind preemptionPolicy Probe: ExecAction
exec; GRPCAction grpc; HTTPGetAction httpGet; TCPSocketAction tcpSocket; n failureThreshold initialDelaySeconds periodSeconds
successThreshold terminationGracePeriodSeconds timeoutSeconds ProjectedVolumeSource: [~]VolumeProjection sources; n defaultMode
QuobyteVolumeSource: b readOnly; s group registry tenant user volume RBDPersistentVolumeSource: SecretReference secretRef; [~]s
monitors; b readOnly; s fsType image keyring pool user RBDVolumeSource: LocalObjectReference secretRef; [~]s monitors; b readOnly; s
fsType image keyring pool user ReplicaSet: ObjectMeta metadata; ReplicaSetSpec spec; ReplicaSetStatus status; s apiVersion kind
ReplicaSetCondition: . lastTransitionTime; s message reason status type ReplicaSetSpec: LabelSelector selector; PodTemplateSpec
template; n minReadySeconds replicas ReplicaSetStatus: [type]ReplicaSetCondition conditions; n availableReplicas fullyLabeledReplicas
observedGeneration readyReplicas replicas terminatingReplicas ReplicationController: ObjectMeta metadata; ReplicationControllerSpec
spec; ReplicationControllerStatus status; s apiVersion kind ReplicationControllerCondition: . lastTransitionTime; s message reason
status type ReplicationControllerSpec: PodTemplateSpec template; n minReadySeconds replicas; ~{}s selector ReplicationControllerStatus:
[type]ReplicationControllerCondition conditions; n availableReplicas fullyLabeledReplicas observedGeneration readyReplicas replicas
ResourceClaim: s name request ~ResourceFieldSelector: * divisor; s containerName resource ResourceHealth: s health message resourceID
ResourceMetricSource: MetricTarget target; s name ResourceMetricStatus: MetricValueStatus current; s name ResourceQuota: ObjectMeta
metadata; ResourceQuotaSpec spec; ResourceQuotaStatus status; s apiVersion kind ResourceQuotaSpec: ScopeSelector scopeSelector; [~]s
scopes; {}* hard ResourceQuotaStatus: {}* hard used ResourceRequirements: [name]ResourceClaim claims; {}* limits requests
ResourceStatus: [resourceID]ResourceHealth resources; s name Role: ObjectMeta metadata; [~]PolicyRule rules; s apiVersion kind
RoleBinding: ObjectMeta metadata; RoleRef roleRef; [~]Subject subjects; s apiVersion kind ~RoleRef: s apiGroup kind name
RollingUpdateDaemonSet: * maxSurge maxUnavailable RollingUpdateDeployment: * maxSurge maxUnavailable RollingUpdateStatefulSetStrategy: *
maxUnavailable; n partition SELinuxOptions: s level role type user ScaleIOPersistentVolumeSource: SecretReference secretRef; b readOnly
sslEnabled; s fsType gateway protectionDomain storageMode storagePool system volumeName ScaleIOVolumeSource: LocalObjectReference
secretRef; b readOnly sslEnabled; s fsType gateway protectionDomain storageMode storagePool system volumeName ~ScopeSelector:
[~]ScopedResourceSelectorRequirement matchExpressions ScopedResourceSelectorRequirement: [~]s values; s operator scopeName
SeccompProfile: s localhostProfile type Secret: ObjectMeta metadata; b immutable; s apiVersion kind type; {}s data stringData
SecretEnvSource: b optional; s name ~SecretKeySelector: b optional; s key name SecretProjection: [~]KeyToPath items; b optional; s name
~SecretReference: s name namespace SecretVolumeSource: [~]KeyToPath items; b optional; n defaultMode; s secretName SecurityContext:
AppArmorProfile appArmorProfile; Capabilities capabilities; SELinuxOptions seLinuxOptions; SeccompProfile seccompProfile;
WindowsSecurityContextOptions windowsOptions; b allowPrivilegeEscalation privileged readOnlyRootFilesystem runAsNonRoot; n runAsGroup
runAsUser; s procMount Service: ObjectMeta metadata; ServiceSpec spec; ServiceStatus status; s apiVersion kind ServiceAccount:
ObjectMeta metadata; [name]ObjectReference secrets; [~]LocalObjectReference imagePullSecrets; b automountServiceAccountToken; s
apiVersion kind ServiceAccountTokenProjection: n expirationSeconds; s audience path ~ServiceBackendPort: n number; s name ServicePort: *
targetPort; n nodePort port; s appProtocol name protocol ServiceSpec: SessionAffinityConfig sessionAffinityConfig;
[port,protocol]ServicePort ports; [~]s clusterIPs externalIPs ipFamilies loadBalancerSourceRanges; b allocateLoadBalancerNodePorts
publishNotReadyAddresses; n healthCheckNodePort; s clusterIP externalName externalTrafficPolicy internalTrafficPolicy ipFamilyPolicy
loadBalancerClass loadBalancerIP sessionAffinity trafficDistribution type; ~{}s selector ServiceStatus: LoadBalancerStatus loadBalancer;
[type]Condition conditions SessionAffinityConfig: ClientIPConfig clientIP SleepAction: n seconds StatefulSet: ObjectMeta metadata;
StatefulSetSpec spec; StatefulSetStatus status; s apiVersion kind StatefulSetCondition: . lastTransitionTime; s message reason status
type StatefulSetOrdinals: n start StatefulSetPersistentVolumeClaimRetentionPolicy: s whenDeleted whenScaled StatefulSetSpec:
LabelSelector selector; PodTemplateSpec template; StatefulSetOrdinals ordinals; StatefulSetPersistentVolumeClaimRetentionPolicy
persistentVolumeClaimRetentionPolicy; StatefulSetUpdateStrategy updateStrategy; [~]PersistentVolumeClaim volumeClaimTemplates; n
minReadySeconds replicas revisionHistoryLimit; s podManagementPolicy serviceName StatefulSetStatus: [type]StatefulSetCondition
conditions; n availableReplicas collisionCount currentReplicas observedGeneration readyReplicas replicas updatedReplicas; s
currentRevision updateRevision StatefulSetUpdateStrategy: RollingUpdateStatefulSetStrategy rollingUpdate; s type StorageClass:
ObjectMeta metadata; [~]TopologySelectorTerm allowedTopologies; [~]s mountOptions; b allowVolumeExpansion; s apiVersion kind provisioner
reclaimPolicy volumeBindingMode; {}s parameters StorageOSPersistentVolumeSource: ObjectReference secretRef; b readOnly; s fsType
volumeName volumeNamespace StorageOSVolumeSource: LocalObjectReference secretRef; b readOnly; s fsType volumeName volumeNamespace
~Subject: s apiGroup kind name namespace SuccessPolicy: [~]SuccessPolicyRule rules SuccessPolicyRule: n succeededCount; s
succeededIndexes Sysctl: s name value TCPSocketAction: * port; s host Taint: . timeAdded; s effect key value Toleration: n
tolerationSeconds; s effect key operator value TopologySelectorLabelRequirement: [~]s values; s key ~TopologySelectorTerm:
[~]TopologySelectorLabelRequirement matchLabelExpressions TopologySpreadConstraint: LabelSelector labelSelector; [~]s matchLabelKeys; n
maxSkew minDomains; s nodeAffinityPolicy nodeTaintsPolicy topologyKey whenUnsatisfiable ~TypedLocalObjectReference: s apiGroup kind name
TypedObjectReference: s apiGroup kind name namespace UncountedTerminatedPods: []s failed succeeded Volume:
AWSElasticBlockStoreVolumeSource awsElasticBlockStore; AzureDiskVolumeSource azureDisk; AzureFileVolumeSource azureFile; CSIVolumeSource
csi; CephFSVolumeSource cephfs; CinderVolumeSource cinder; ConfigMapVolumeSource configMap; DownwardAPIVolumeSource downwardAPI;
EmptyDirVolumeSource emptyDir; EphemeralVolumeSource ephemeral; FCVolumeSource fc; FlexVolumeSource flexVolume; FlockerVolumeSource
flocker; GCEPersistentDiskVolumeSource gcePersistentDisk; GitRepoVolumeSource gitRepo; GlusterfsVolumeSource glusterfs;
HostPathVolumeSource hostPath; ISCSIVolumeSource iscsi; ImageVolumeSource image; NFSVolumeSource nfs; PersistentVolumeClaimVolumeSource
persistentVolumeClaim; PhotonPersistentDiskVolumeSource photonPersistentDisk; PortworxVolumeSource portworxVolume; ProjectedVolumeSource
projected; QuobyteVolumeSource quobyte; RBDVolumeSource rbd; ScaleIOVolumeSource scaleIO; SecretVolumeSource secret;
StorageOSVolumeSource storageos; VsphereVirtualDiskVolumeSource vsphereVolume; s name VolumeDevice: s devicePath name VolumeMount: b
readOnly; s mountPath mountPropagation name recursiveReadOnly subPath subPathExpr VolumeMountStatus: VolumeStatus volumeStatus; b
readOnly; s mountPath name recursiveReadOnly VolumeNodeAffinity: NodeSelector required VolumeProjection: ClusterTrustBundleProjection
clusterTrustBundle; ConfigMapProjection configMap; DownwardAPIProjection downwardAPI; PodCertificateProjection podCertificate;
SecretProjection secret; ServiceAccountTokenProjection serviceAccountToken VolumeResourceRequirements: {}* limits requests VolumeStatus:
ImageVolumeStatus image VsphereVirtualDiskVolumeSource: s fsType storagePolicyID storagePolicyName volumePath WeightedPodAffinityTerm:
PodAffinityTerm podAffinityTerm; n weight WindowsSecurityContextOptions: b hostProcess; s gmsaCredentialSpec gmsaCredentialSpecName
runAsUserName
"""
