{{- define "nightshift.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "nightshift.serviceAccount" -}}
{{- default (include "nightshift.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "nightshift.image" -}}
{{- $version := default .Chart.AppVersion .Values.image.tag -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository $version -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods of a component: (list root component). They never change. */}}
{{- define "nightshift.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: nightshift
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "nightshift.labels" -}}
{{ include "nightshift.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "nightshift-%s" (index . 0).Chart.Version }}
{{- end -}}

{{- define "nightshift.gatewayName" -}}
{{- printf "%s-gateway" (include "nightshift.fullname" .) -}}
{{- end -}}

{{/* Settings that are not secret, as one file. */}}
{{- define "nightshift.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if include "nightshift.workersUseGateway" . -}}
{{- $way := dict "url" (printf "http://%s:%v" (include "nightshift.gatewayName" .) .Values.gateway.port) "api_key_file" "/run/secrets/worker-token/worker-token" "request_timeout" "6m" "inference_objective" "batch" "send_fairness_header" true -}}
{{- $_ := set $config "global_inference_gateway" (mergeOverwrite $way ($config.global_inference_gateway | default dict)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/*
Not empty if workers send through the gateway of this release. With a gateway of their own they do not: the token
must not reach another server.
*/}}
{{- define "nightshift.workersUseGateway" -}}
{{- $own := .Values.config.global_inference_gateway | default dict -}}
{{- if and .Values.gateway.enabled (not $own.url) (not .Values.config.model_gateways) -}}
true
{{- end -}}
{{- end -}}

{{/* Environment of one process: (list root user), where user is migrate, api or worker. */}}
{{- define "nightshift.env" -}}
{{- $root := index . 0 -}}
{{- $user := index . 1 -}}
{{- $v := $root.Values -}}
- name: NIGHTSHIFT__LOG__FORMAT
  value: json
- name: DATABASE_URL
  value: {{ printf "postgres://%s@%s:%v/%s%s" (index $v.postgres.users $user) (required "postgres.host is required" $v.postgres.host) $v.postgres.port $v.postgres.database (ternary "" (printf "?%s" $v.postgres.parameters) (empty $v.postgres.parameters)) | quote }}
- name: NIGHTSHIFT__POSTGRES__PASSWORD_FILE
  value: /run/secrets/postgres/password
- name: TEMPORAL_ADDRESS
  value: {{ required "temporal.address is required" $v.temporal.address | quote }}
- name: TEMPORAL_NAMESPACE
  value: {{ $v.temporal.namespace | quote }}
{{- if $v.temporal.apiKey.secret }}
- name: NIGHTSHIFT__TEMPORAL__API_KEY_FILE
  value: /run/secrets/temporal-key/api-key
{{- end }}
{{- if $v.temporal.tls.secret }}
- name: NIGHTSHIFT__TEMPORAL__TLS__CLIENT_CERT_FILE
  value: /run/secrets/temporal-tls/tls.crt
- name: NIGHTSHIFT__TEMPORAL__TLS__CLIENT_KEY_FILE
  value: /run/secrets/temporal-tls/tls.key
{{- if $v.temporal.tls.ca }}
- name: NIGHTSHIFT__TEMPORAL__TLS__CA_CERT_FILE
  value: /run/secrets/temporal-tls/ca.crt
{{- end }}
{{- end }}
{{- if ne $user "migrate" }}
{{ include "nightshift.storeEnv" $root }}
{{- end }}
{{- end -}}

{{- define "nightshift.storeEnv" -}}
{{- $store := .Values.objectStore -}}
- name: NIGHTSHIFT__OBJECT_STORE__TYPE
  value: {{ $store.type }}
{{- if eq $store.type "filesystem" }}
- name: NIGHTSHIFT__OBJECT_STORE__PATH
  value: /data
{{- else }}
{{- $s3 := $store.s3 }}
- name: NIGHTSHIFT__OBJECT_STORE__BUCKET
  value: {{ required "objectStore.s3.bucket is required" $s3.bucket | quote }}
{{- with $s3.region }}
- name: NIGHTSHIFT__OBJECT_STORE__REGION
  value: {{ . | quote }}
{{- end }}
{{- with $s3.endpoint }}
- name: NIGHTSHIFT__OBJECT_STORE__ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with $s3.prefix }}
- name: NIGHTSHIFT__OBJECT_STORE__PREFIX
  value: {{ . | quote }}
{{- end }}
- name: NIGHTSHIFT__OBJECT_STORE__USE_PATH_STYLE
  value: {{ $s3.usePathStyle | quote }}
- name: NIGHTSHIFT__OBJECT_STORE__CACHE_DIR
  value: /cache
- name: NIGHTSHIFT__OBJECT_STORE__CACHE_BYTES
  value: {{ $s3.cache | quote }}
{{- if $s3.credentials.secret }}
- name: NIGHTSHIFT__OBJECT_STORE__ACCESS_KEY_ID
  valueFrom: { secretKeyRef: { name: {{ $s3.credentials.secret }}, key: {{ $s3.credentials.accessKeyId }} } }
- name: NIGHTSHIFT__OBJECT_STORE__SECRET_ACCESS_KEY_FILE
  value: /run/secrets/s3/secret-access-key
{{- end }}
{{- end }}
{{- end -}}

{{/* Variables by which the gateway reads API keys: it has the database user of the API, which may do that. */}}
{{- define "nightshift.keysEnv" -}}
{{- range fromYamlArray (include "nightshift.env" (list . "api")) }}
{{- if has .name (list "DATABASE_URL" "NIGHTSHIFT__POSTGRES__PASSWORD_FILE") }}
- {{ toJson . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Mounts of one process: (list root user). */}}
{{- define "nightshift.mounts" -}}
{{- $v := (index . 0).Values -}}
{{- $user := index . 1 -}}
- { name: tmp, mountPath: /tmp }
- { name: config, mountPath: /etc/nightshift, readOnly: true }
- { name: postgres, mountPath: /run/secrets/postgres, readOnly: true }
{{- if $v.secretFiles }}
- { name: secret-files, mountPath: /etc/.secrets, readOnly: true }
{{- end }}
{{- if $v.temporal.apiKey.secret }}
- { name: temporal-key, mountPath: /run/secrets/temporal-key, readOnly: true }
{{- end }}
{{- if $v.temporal.tls.secret }}
- { name: temporal-tls, mountPath: /run/secrets/temporal-tls, readOnly: true }
{{- end }}
{{- if ne $user "migrate" }}
{{- if eq $v.objectStore.type "filesystem" }}
- { name: data, mountPath: /data }
{{- else }}
- { name: cache, mountPath: /cache }
{{- if $v.objectStore.s3.credentials.secret }}
- { name: s3, mountPath: /run/secrets/s3, readOnly: true }
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Volumes of one process: (list root user). Secrets are mounted file by file under fixed names. */}}
{{- define "nightshift.volumes" -}}
{{- $root := index . 0 -}}
{{- $v := $root.Values -}}
{{- $user := index . 1 -}}
- name: tmp
  emptyDir: {}
- name: config
  configMap: { name: {{ include "nightshift.fullname" $root }}{{ if eq $user "migrate" }}-migrate{{ end }} }
- name: postgres
  secret:
    secretName: {{ required "postgres.passwords.secret is required" $v.postgres.passwords.secret }}
    items: [{ key: {{ index $v.postgres.passwords.keys $user }}, path: password }]
{{- with $v.secretFiles }}
- name: secret-files
  secret: { secretName: {{ . }} }
{{- end }}
{{- with $v.temporal.apiKey }}
{{- if .secret }}
- name: temporal-key
  secret: { secretName: {{ .secret }}, items: [{ key: {{ .key }}, path: api-key }] }
{{- end }}
{{- end }}
{{- with $v.temporal.tls.secret }}
- name: temporal-tls
  secret: { secretName: {{ . }} }
{{- end }}
{{- if ne $user "migrate" }}
{{- if eq $v.objectStore.type "filesystem" }}
- name: data
  persistentVolumeClaim: { claimName: {{ required "objectStore.filesystem.claim is required" $v.objectStore.filesystem.claim }} }
{{- else }}
- name: cache
  emptyDir: {}
{{- with $v.objectStore.s3.credentials }}
{{- if .secret }}
- name: s3
  secret: { secretName: {{ .secret }}, items: [{ key: {{ .secretAccessKey }}, path: secret-access-key }] }
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "nightshift.tokenVolume" -}}
{{- $token := .Values.gateway.workerToken -}}
- name: worker-token
  secret:
    secretName: {{ required "gateway.workerToken.secret is required" $token.secret }}
    items: [{ key: {{ $token.key }}, path: worker-token }]
{{- end -}}

{{- define "nightshift.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "nightshift.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* Probes of a process. /health answers soon after the start, also while the process waits for a store. */}}
{{- define "nightshift.probes" -}}
startupProbe:
  httpGet: { path: /health, port: metrics }
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /health, port: metrics }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: /ready, port: metrics }
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}
