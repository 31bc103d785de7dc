{{/* What the init container and the gateway share: settings by environment, and what is mounted. */}}

{{- define "deid.environment" -}}
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
{{- if $.Values.tls.clientCa }}
- {name: DEID_{{ $door }}_TLS_CA, value: /etc/deid/tls/ca.crt}
{{- end }}
{{- end }}
- {name: DEID_DICOM_TLS_PORT, value: "2762"}
{{- if .Values.tls.dicomweb }}
- {name: DEID_STOW_HOST, value: 0.0.0.0}
- {name: DEID_STOW_PORT, value: "8443"}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: DEID_{{ $name | snakecase | upper }}
  value: {{ include "deid.setting" $value | quote }}
{{- end }}
{{- with .Values.database.existingSecret }}
- name: DEID_DATABASE_URL
  valueFrom:
    secretKeyRef: {name: {{ . | quote }}, key: {{ $.Values.database.key | quote }}}
{{- end }}
{{- with .Values.lookups.existingSecret }}
- name: DEID_LOOKUP_URLS
  valueFrom:
    secretKeyRef: {name: {{ . | quote }}, key: {{ $.Values.lookups.key | quote }}}
{{- end }}
{{- with .Values.notify.existingSecret }}
{{- $secret := . }}
{{- range $entry := list "webhook-url" "webhook-key" "mail-password" }}
- name: DEID_NOTIFY_{{ $entry | replace "-" "_" | upper }}
  valueFrom:
    secretKeyRef: {name: {{ $secret | quote }}, key: {{ $entry }}, optional: true}
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
