{{/* What init containers and the gateway share: settings by environment, and what is mounted. Given: root, role, own
(what the values say about that role). */}}

{{- define "deid.environment" -}}
{{- $role := .role }}
{{- $own := .own }}
{{- $root := .root }}
{{- with .root }}
- {name: DEID_HOME, value: /var/lib/deid/home}
- {name: DEID_KEY_FILE, value: /etc/deid/keys/master.key}
- {name: DEID_DICOM_HOST, value: 0.0.0.0}
- {name: DEID_DICOM_PORT, value: "11112"}
- {name: DEID_HTTP_HOST, value: 0.0.0.0}
- {name: DEID_HTTP_PORT, value: "8080"}
- {name: DEID_POLICIES, value: /etc/deid/policies}
{{- if .Values.tls.existingSecret }}
{{- range $door := ternary (list "DICOM" "STOW") (list "DICOM") .Values.tls.dicomweb }}
- {name: DEID_{{ $door }}_TLS_CERTIFICATE, value: /etc/deid/tls/tls.crt}
- {name: DEID_{{ $door }}_TLS_KEY, value: /etc/deid/tls/tls.key}
{{- if $root.Values.tls.clientCa }}
- {name: DEID_{{ $door }}_TLS_CA, value: /etc/deid/tls/ca.crt}
{{- end }}
{{- end }}
- {name: DEID_DICOM_TLS_PORT, value: "2762"}
{{- if .Values.tls.dicomweb }}
- {name: DEID_STOW_HOST, value: 0.0.0.0}
- {name: DEID_STOW_PORT, value: "8443"}
{{- end }}
{{- end }}
{{- with .Values.review }}
{{- if .enabled }}
- {name: DEID_REVIEW_HOST, value: 0.0.0.0}
- {name: DEID_REVIEW_PORT, value: "8081"}
- {name: DEID_REVIEW_URL, value: {{ printf "https://%s" .host | quote }}}
{{- if .tlsSecret }}
- {name: DEID_REVIEW_TLS_CERTIFICATE, value: /etc/deid/review-tls/tls.crt}
- {name: DEID_REVIEW_TLS_KEY, value: /etc/deid/review-tls/tls.key}
{{- end }}
{{- if .oidcSecret }}
- {name: DEID_REVIEW_OIDC_SECRET_FILE, value: /etc/deid/oidc/client-secret}
{{- if .oidcCa }}
- {name: DEID_REVIEW_OIDC_CA, value: /etc/deid/oidc/ca.crt}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if ne $role "all" }}
{{- /* Without workers for GPUs the others do that work too: it would wait for ever. */}}
{{- $both := and (eq $role "work-cpu") (not (dig "work-gpu" "enabled" false .Values.cluster.roles)) }}
- {name: DEID_ROLES, value: {{ ternary "work-cpu,work-gpu" $role $both | quote }}}
{{- end }}
{{- $settings := deepCopy .Values.settings }}
{{- range $name, $value := $own.settings }}
{{- $_ := set $settings $name $value }}
{{- end }}
{{- range $name, $value := $settings }}
- name: DEID_{{ $name | snakecase | upper }}
  value: {{ include "deid.setting" $value | quote }}
{{- end }}
{{- with .Values.database.existingSecret }}
- name: DEID_DATABASE_URL
  valueFrom:
    secretKeyRef: {name: {{ . | quote }}, key: {{ $root.Values.database.key | quote }}}
{{- end }}
{{- with .Values.lookups.existingSecret }}
- name: DEID_LOOKUP_URLS
  valueFrom:
    secretKeyRef: {name: {{ . | quote }}, key: {{ $root.Values.lookups.key | quote }}}
{{- end }}
{{- with .Values.notify.existingSecret }}
{{- $secret := . }}
{{- range $entry := list "webhook-url" "webhook-key" "mail-password" }}
- name: DEID_NOTIFY_{{ $entry | replace "-" "_" | upper }}
  valueFrom:
    secretKeyRef: {name: {{ $secret | quote }}, key: {{ $entry }}, optional: true}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "deid.mounts" -}}
- {name: home, mountPath: /var/lib/deid}
- {name: tmp, mountPath: /tmp}
- {name: master-key, mountPath: /etc/deid/keys, readOnly: true}
{{- if .Values.tls.existingSecret }}
- {name: tls, mountPath: /etc/deid/tls, readOnly: true}
{{- end }}
{{- if and .Values.review.enabled .Values.review.tlsSecret }}
- {name: review-tls, mountPath: /etc/deid/review-tls, readOnly: true}
{{- end }}
{{- if and .Values.review.enabled .Values.review.oidcSecret }}
- {name: oidc, mountPath: /etc/deid/oidc, readOnly: true}
{{- end }}
{{- if .Values.destinations.existingSecret }}
- {name: destinations, mountPath: /etc/deid/destinations, readOnly: true}
{{- end }}
{{- if .Values.weights.existingClaim }}
- {name: weights, mountPath: /etc/deid/models, readOnly: true}
{{- end }}
{{- if .Values.policies }}
- {name: policies, mountPath: /etc/deid/policies, readOnly: true}
{{- end }}
{{- end -}}

{{- define "deid.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
