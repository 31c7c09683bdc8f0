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

{{/* Processes that hold one model together: the GPUs of all pods of a group. */}}
{{- define "rbee.ranks" -}}
{{- if or (eq .Values.kind "image") (eq .Values.device "cpu") -}}1{{- else -}}{{ mul .Values.gpus .Values.group.size }}{{- end -}}
{{- end -}}

{{/* What a group of pods cannot be. */}}
{{- define "rbee.checkGroup" -}}
{{- if or (eq .Values.kind "image") (eq .Values.device "cpu") -}}
{{- fail (printf "group.size %v is for chats on GPUs: kind is %s and device %s" .Values.group.size .Values.kind .Values.device) -}}
{{- end -}}
{{- if not (or .Values.group.secret .Values.group.insecure) -}}
{{- fail (printf "group.size %v needs group.secret: whoever reaches the leader's port could join its group" .Values.group.size) -}}
{{- end -}}
{{- end -}}
