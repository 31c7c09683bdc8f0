{{- define "rbee.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "rbee.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "rbee.labels" -}}
{{ include "rbee.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "rbee.program" -}}
{{- if eq .Values.kind "image" -}}sd-worker-{{ .Values.device }}{{- else -}}llm-worker-rbee-{{ .Values.device }}{{- end -}}
{{- end -}}

{{- define "rbee.scheme" -}}
{{- if .Values.tlsSecret -}}HTTPS{{- else -}}HTTP{{- end -}}
{{- end -}}
