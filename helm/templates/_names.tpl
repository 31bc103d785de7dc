{{/* Names and labels. A release called "deid-gateway" gives "deid-gateway", any other "<release>-deid-gateway". */}}

{{- define "deid.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "deid.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "deid.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "deid.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* What a Service selects: in a cluster the pods of one role, else the one pod there is. */}}
{{- define "deid.selectorOf" -}}
{{ include "deid.selector" .root }}
{{- if .root.Values.cluster.enabled }}
app.kubernetes.io/component: {{ .role }}
{{- end }}
{{- end -}}

{{- define "deid.home" -}}
{{- .Values.persistence.existingClaim | default (printf "%s-home" (include "deid.name" .)) -}}
{{- end -}}

{{- define "deid.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "deid.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* A role may run another image, such as one built with TORCH=cuda. */}}
{{- define "deid.image" -}}
{{- $own := .own.image | default dict -}}
{{- $image := ternary $own .root.Values.image (or $own.tag $own.digest | not | not) -}}
{{- if $image.digest -}}
{{- printf "%s@%s" .root.Values.image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" .root.Values.image.repository ($image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* One setting as text. Helm reads every number as a float: 1073741824 would print as 1.073741824e+09. */}}
{{- define "deid.setting" -}}
{{- if kindIs "slice" . -}}
{{- join "," . -}}
{{- else if and (kindIs "float64" .) (eq . (floor .)) -}}
{{- int64 . -}}
{{- else -}}
{{- toString . -}}
{{- end -}}
{{- end -}}
