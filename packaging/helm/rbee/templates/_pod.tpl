{{/* A pod's template. role: worker, which stands alone; leader and rank, of a group of pods. */}}
{{- define "rbee.pod" -}}
{{- $role := .role -}}
{{- $answers := ne .role "rank" -}}
{{- with .root -}}
{{- $ranks := include "rbee.ranks" . | int -}}
metadata:
  labels:
    {{- include "rbee.labels" . | nindent 4 }}
  {{- if and $answers (not .Values.serviceMonitor.enabled) }}
  annotations:
    prometheus.io/scrape: "true"
    prometheus.io/scheme: {{ include "rbee.scheme" . | lower }}
    prometheus.io/port: "8080"
    prometheus.io/path: /metrics
  {{- end }}
spec:
  automountServiceAccountToken: false
  # The pause before SIGTERM, the drain, and the worker's own two seconds.
  terminationGracePeriodSeconds: {{ add .Values.drainSeconds 10 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    {{- with .Values.supplementalGroups }}
    supplementalGroups:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    seccompProfile:
      type: RuntimeDefault
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . | quote }}
    {{- end }}
  {{- end }}
  containers:
    - name: worker
      image: {{ printf "%s:%s" .Values.image.repository (default (printf "%s-%s" .Chart.AppVersion .Values.device) .Values.image.tag) | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command:
        - {{ include "rbee.program" . }}
      args:
        - --model
        - {{ .Values.model.path | quote }}
        {{- with .Values.model.name }}
        - --model-ref
        - {{ . | quote }}
        {{- end }}
        - --worker-id
        - $(POD_NAME)
        - --host
        - 0.0.0.0
        - --port
        - "8080"
        - --drain-seconds
        - {{ .Values.drainSeconds | quote }}
        {{- if .Values.apiKeysSecret }}
        - --api-keys
        - /etc/rbee/keys/keys
        {{- end }}
        {{- if .Values.tlsSecret }}
        - --tls-cert
        - /etc/rbee/tls/tls.crt
        - --tls-key
        - /etc/rbee/tls/tls.key
        {{- end }}
        {{- if gt $ranks 1 }}
        - --tensor-parallel-size
        - {{ $ranks | quote }}
        {{- end }}
        {{- if ne $role "worker" }}
        - --group-seconds
        - {{ min .Values.startupSeconds 86400 | quote }}
        {{- if .Values.group.secret }}
        - --group-secret-file
        - /etc/rbee/group/secret
        {{- else }}
        - --group-insecure
        {{- end }}
        {{- end }}
        {{- range .Values.flags }}
        - {{ . | quote }}
        {{- end }}
      env:
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        - name: LLORCH_LOG_FORMAT
          value: json
        {{- if ne $role "worker" }}
        # Where ranks write what they do, for group-health; the root file system is read-only.
        - name: XDG_RUNTIME_DIR
          value: /dev/shm
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- if $answers }}
      ports:
        - name: http
          containerPort: 8080
      # 200 when the model is loaded, 503 before.
      startupProbe:
        httpGet:
          path: /health/live
          port: http
          scheme: {{ include "rbee.scheme" . }}
        periodSeconds: 5
        failureThreshold: {{ div (add .Values.startupSeconds 4) 5 }}
      livenessProbe:
        httpGet:
          path: /health/live
          port: http
          scheme: {{ include "rbee.scheme" . }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        httpGet:
          path: /health/ready
          port: http
          scheme: {{ include "rbee.scheme" . }}
        periodSeconds: 2
        failureThreshold: 1
      lifecycle:
        preStop:
          exec:
            # For the cluster to stop sending requests before the worker refuses them.
            command: ["sleep", "5"]
      {{- else }}
      # It has no port: its own file says what it does.
      livenessProbe:
        exec:
          command: ["rbee", "group-health"]
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        exec:
          command: ["rbee", "group-health", "--ready"]
        periodSeconds: 5
        timeoutSeconds: 5
      {{- end }}
      resources:
        {{- with .Values.resources.requests }}
        requests:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- $limits := default dict .Values.resources.limits }}
        {{- if eq .Values.device "cuda" }}
        {{- $limits = merge (dict "nvidia.com/gpu" .Values.gpus) $limits }}
        {{- else if eq .Values.device "rocm" }}
        {{- $limits = merge (dict "amd.com/gpu" .Values.gpus) $limits }}
        {{- end }}
        {{- with $limits }}
        limits:
          {{- toYaml . | nindent 10 }}
        {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: ["ALL"]
      volumeMounts:
        - name: models
          mountPath: /models
          readOnly: true
        {{- if .Values.apiKeysSecret }}
        - name: keys
          mountPath: /etc/rbee/keys
          readOnly: true
        {{- end }}
        {{- if .Values.tlsSecret }}
        - name: tls
          mountPath: /etc/rbee/tls
          readOnly: true
        {{- end }}
        {{- if gt $ranks 1 }}
        - name: shared
          mountPath: /dev/shm
        {{- end }}
        {{- if and (ne $role "worker") .Values.group.secret }}
        - name: group
          mountPath: /etc/rbee/group
          readOnly: true
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: models
      {{- if .Values.model.existingClaim }}
      persistentVolumeClaim:
        claimName: {{ .Values.model.existingClaim | quote }}
        readOnly: true
      {{- else }}
      emptyDir: {}
      {{- end }}
    {{- with .Values.apiKeysSecret }}
    - name: keys
      secret:
        secretName: {{ . | quote }}
    {{- end }}
    {{- with .Values.tlsSecret }}
    - name: tls
      secret:
        secretName: {{ . | quote }}
    {{- end }}
    {{- if gt $ranks 1 }}
    # NCCL and RCCL need more than the 64 MiB that a container has.
    - name: shared
      emptyDir:
        medium: Memory
        sizeLimit: 2Gi
    {{- end }}
    {{- if and (ne $role "worker") .Values.group.secret }}
    - name: group
      secret:
        secretName: {{ .Values.group.secret | quote }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}
