{{- define "cc.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* Cut so that the longest suffix, -leader-election, fits into 63. */ -}}
{{- define "cc.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 47 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "cc.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 47 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 47 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "cc.selector" -}}
app.kubernetes.io/name: {{ include "cc.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- /* Without the chart's version, so that pods do not restart for a new chart alone. */ -}}
{{- define "cc.podLabels" -}}
{{ include "cc.selector" . }}
app.kubernetes.io/component: controller
app.kubernetes.io/part-of: cronjob-controller
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "cc.labels" -}}
{{ include "cc.podLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end -}}

{{- define "cc.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "cc.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is required with serviceAccount.create=false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "cc.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "cc.config" -}}
{{ toYaml (merge (dict "apiVersion" "cronjob-controller.config/v1alpha1" "kind" "ControllerConfiguration") .Values.config) }}
{{- end -}}

{{- /* What stands in .Values.config.SECTION.FIELD, or nothing: (list . SECTION FIELD). Sections may be null. */ -}}
{{- define "cc.setting" -}}
{{- $section := get ((index . 0).Values.config | default dict) (index . 1) -}}
{{- if kindIs "map" $section -}}
{{- $value := get $section (index . 2) -}}
{{- if not (kindIs "invalid" $value) -}}{{- $value -}}{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Where the value of a flag stands otherwise than in config: "extraArgs", "extraEnv" or nothing. (list . FLAG) */ -}}
{{- define "cc.given" -}}
{{- $flag := index . 1 -}}
{{- $variable := printf "CRONJOB_CONTROLLER_%s" ($flag | replace "-" "_" | upper) -}}
{{- $where := "" -}}
{{- range (index . 0).Values.extraEnv -}}{{- if eq (toString .name) $variable -}}{{- $where = "extraEnv" -}}{{- end -}}{{- end -}}
{{- range (index . 0).Values.extraArgs -}}{{- if regexMatch (printf "^--%s(=|$)" $flag) . -}}{{- $where = "extraArgs" -}}{{- end -}}{{- end -}}
{{- $where -}}
{{- end -}}

{{- define "cc.leaseName" -}}
{{- include "cc.setting" (list . "leaderElection" "resourceName") | default "cronjob-controller" -}}
{{- end -}}

{{- define "cc.leaseNamespace" -}}
{{- include "cc.setting" (list . "leaderElection" "resourceNamespace") | default .Release.Namespace -}}
{{- end -}}

{{- /* "http" or "https": how the metrics are served. */ -}}
{{- define "cc.metricsScheme" -}}
{{- ternary "http" "https" (eq (include "cc.setting" (list . "metrics" "secure")) "false") -}}
{{- end -}}

{{- /* Fails for what other objects of the chart would not follow. */ -}}
{{- define "cc.check" -}}
{{- $owned := dict
  "metrics-bind-address" "set metrics.port, which the port and the Service follow"
  "metrics-secure" "set config.metrics.secure, which the ServiceMonitor follows"
  "health-probe-bind-address" "the kubelet probes port 8081, and this cannot be changed"
  "leader-elect" "set config.leaderElection.leaderElect"
  "leader-elect-resource-name" "set config.leaderElection.resourceName, which the Role follows"
  "leader-elect-resource-namespace" "set config.leaderElection.resourceNamespace, which the Role follows"
  "logging-format" "set logging.format" -}}
{{- range $flag, $instead := $owned -}}
{{- with include "cc.given" (list $ $flag) -}}
{{- fail (printf "%s: --%s cannot be set here: %s" . $flag $instead) -}}
{{- end -}}
{{- end -}}
{{- range $field := list (list "metrics" "bindAddress" "metrics-bind-address") (list "health" "bindAddress" "health-probe-bind-address") (list "logging" "format" "logging-format") -}}
{{- if include "cc.setting" (list $ (index $field 0) (index $field 1)) -}}
{{- fail (printf "config.%s.%s cannot be set here: %s" (index $field 0) (index $field 1) (get $owned (index $field 2))) -}}
{{- end -}}
{{- end -}}
{{- if eq (int .Values.metrics.port) 8081 -}}
{{- fail "metrics.port=8081: probes are there, take another" -}}
{{- end -}}
{{- if eq (include "cc.setting" (list . "leaderElection" "leaderElect")) "false" -}}
{{- if or (gt (int .Values.replicaCount) 1) (ne (toString .Values.updateStrategy.type) "Recreate") -}}
{{- fail "config.leaderElection.leaderElect=false: two pods would both work, so it needs replicaCount=1 and updateStrategy.type=Recreate" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* A binding of .role to the service account; a ClusterRole unless .namespace says where. */ -}}
{{- define "cc.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "RoleBinding" "ClusterRoleBinding" (hasKey . "namespace") }}
metadata:
  name: {{ .role | quote }}
  {{- with .namespace }}
  namespace: {{ . | quote }}
  {{- end }}
  labels:
    {{- include "cc.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ ternary "Role" "ClusterRole" (hasKey . "namespace") }}
  name: {{ .role | quote }}
subjects:
  - kind: ServiceAccount
    name: {{ include "cc.serviceAccount" .root | quote }}
    namespace: {{ .root.Release.Namespace | quote }}
{{- end -}}
