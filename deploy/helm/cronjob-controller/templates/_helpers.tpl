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
app.kubernetes.io/name: {{ include "cc.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
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
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
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

{{- /* A binding of .role to the service account; a ClusterRole unless .namespaced. */ -}}
{{- define "cc.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "RoleBinding" "ClusterRoleBinding" (default false .namespaced) }}
metadata:
  name: {{ .role }}
  {{- if .namespaced }}
  namespace: {{ .root.Release.Namespace }}
  {{- end }}
  labels:
    {{- include "cc.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ ternary "Role" "ClusterRole" (default false .namespaced) }}
  name: {{ .role }}
subjects:
  - kind: ServiceAccount
    name: {{ include "cc.serviceAccount" .root }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}
