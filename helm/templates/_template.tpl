{{/* The pod of a role, in a StatefulSet or a Deployment. Given: root, role, own (what the values say about that role). */}}
{{- define "deid.template" -}}
{{- $given := . }}
{{- $role := .role }}
{{- $own := .own }}
{{- with .root }}
metadata:
  labels:
    {{- include "deid.labels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $role }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/policies: {{ .Values.policies | toJson | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "deid.serviceAccount" . }}
  automountServiceAccountToken: false
  # Links would set DEID_..._SERVICE_HOST for a Service called deid-..., and unknown DEID_* settings are refused.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    # Always would open the whole home to the group at every start, and a key that others can read is refused.
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  initContainers:
    - name: init
      image: {{ include "deid.image" $given | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      # A folder inside the volume: its root belongs to root, and the home must be ours, mode 0700.
      args: [init, /var/lib/deid/home]
      env: {{- include "deid.environment" $given | nindent 8 }}
      securityContext: {{- include "deid.containerSecurity" . | nindent 8 }}
      resources: {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts: {{- include "deid.mounts" . | nindent 8 }}
    {{- if .Values.weights.existingClaim }}
    # Cards and weights that were swapped or added are refused before anything loads them.
    - name: weights
      image: {{ include "deid.image" $given | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command: [/bin/sh, -c]
      args:
        - {{ .Files.Get "scripts/weights.sh" | quote }}
      env:
        - {name: WEIGHTS, value: /etc/deid/models}
        - {name: MODELS, value: /var/lib/deid/home/models}
        - name: SHA256SUMS
          value: |-
            {{- range $file, $digest := .Values.weights.sha256 }}
            {{ $digest }}  {{ $file }}
            {{- end }}
      securityContext: {{- include "deid.containerSecurity" . | nindent 8 }}
      resources: {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts: {{- include "deid.mounts" . | nindent 8 }}
    {{- end }}
  containers:
    - name: gateway
      image: {{ include "deid.image" $given | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve]
      env: {{- include "deid.environment" $given | nindent 8 }}
      ports:
        - {name: http, containerPort: 8080, protocol: TCP}
        {{- if has $role (list "all" "receive") }}
        - {name: dicom, containerPort: 11112, protocol: TCP}
        {{- if .Values.tls.existingSecret }}
        - {name: dicom-tls, containerPort: 2762, protocol: TCP}
        {{- if .Values.tls.dicomweb }}
        - {name: dicomweb, containerPort: 8443, protocol: TCP}
        {{- end }}
        {{- end }}
        {{- end }}
        {{- if and .Values.review.enabled (has $role (list "all" "web")) }}
        - {name: review, containerPort: 8081, protocol: TCP}
        {{- end }}
      # A start replays what a crash left, so it may take a while before the port answers.
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 5
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 20
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 2
      securityContext: {{- include "deid.containerSecurity" . | nindent 8 }}
      resources: {{- toYaml ($own.resources | default .Values.resources) | nindent 8 }}
      volumeMounts: {{- include "deid.mounts" . | nindent 8 }}
  volumes:
    - name: tmp
      emptyDir: {sizeLimit: {{ .Values.tmpSize | quote }}}
    - name: master-key
      secret:
        secretName: {{ .Values.masterKey.existingSecret | quote }}
        defaultMode: 0440
        items:
          - {key: {{ .Values.masterKey.key | quote }}, path: master.key}
    {{- with .Values.tls.existingSecret }}
    - name: tls
      secret: {secretName: {{ . | quote }}, defaultMode: 0440}
    {{- end }}
    {{- if .Values.policies }}
    - name: policies
      configMap: {name: {{ include "deid.name" . }}-policies}
    {{- end }}
    {{- if and .Values.review.enabled .Values.review.tlsSecret }}
    - name: review-tls
      secret: {secretName: {{ .Values.review.tlsSecret | quote }}, defaultMode: 0440}
    {{- end }}
    {{- if and .Values.review.enabled .Values.review.oidcSecret }}
    - name: oidc
      secret: {secretName: {{ .Values.review.oidcSecret | quote }}, defaultMode: 0440}
    {{- end }}
    {{- with .Values.destinations.existingSecret }}
    - name: destinations
      secret: {secretName: {{ . | quote }}, defaultMode: 0440}
    {{- end }}
    {{- with .Values.weights.existingClaim }}
    - name: weights
      persistentVolumeClaim: {claimName: {{ . | quote }}, readOnly: true}
    {{- end }}
    {{- if or .Values.cluster.enabled .Values.persistence.existingClaim }}
    - name: home
      persistentVolumeClaim: {claimName: {{ include "deid.home" . | quote }}}
    {{- end }}
  {{- with $own.nodeSelector | default .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $own.tolerations | default .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $own.affinity | default .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.cluster.enabled }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "deid.selectorOf" $given | nindent 10 }}
  {{- end }}
{{- end }}
{{- end -}}
