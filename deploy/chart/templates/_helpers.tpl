{{/* The name of everything that runs. */}}
{{- define "kueuecore.name" -}}
{{ eq .Values.mode "dryRun" | ternary "kueuecore-dry-run" "kueuecore" }}
{{- end -}}

{{- define "kueuecore.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/*
The objects of a file of manifests/ as a list under `items`, in the namespace of the release.
Takes `root`, `file`, and of which `kinds`; without them, of all.
*/}}
{{- define "kueuecore.objects" -}}
{{- $items := list -}}
{{- $text := .root.Files.Get (printf "manifests/%s" .file) | required (printf "manifests/%s is missing" .file) -}}
{{- range regexSplit "(?m)^---$" ($text | replace "kueue-system" (.root.Release.Namespace | quote)) -1 -}}
{{- $object := fromYaml . -}}
{{- if and $object (or (not $.kinds) (has $object.kind $.kinds)) -}}
{{- $items = append $items $object -}}
{{- end -}}
{{- end -}}
{{ dict "items" $items | toYaml }}
{{- end -}}

{{/* The same as documents. */}}
{{- define "kueuecore.documents" -}}
{{- range (include "kueuecore.objects" . | fromYaml).items }}
---
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The file with what runs in this mode. */}}
{{- define "kueuecore.file" -}}
{{ eq .Values.mode "dryRun" | ternary "dry-run.yaml" "kueuecore.yaml" }}
{{- end -}}

{{/* The Configuration: that of manifests/kueuecore.yaml with the values over it. */}}
{{- define "kueuecore.configuration" -}}
{{- $map := first (include "kueuecore.objects" (dict "root" . "file" "kueuecore.yaml" "kinds" (list "ConfigMap")) | fromYaml).items -}}
{{- $text := get $map.data "configuration.yaml" -}}
{{- $changes := deepCopy .Values.configuration -}}
{{- if ne .Release.Namespace "kueue-system" -}}
{{- /* Jobs there are not managed, as those of Kueue's namespace. */ -}}
{{- $changes = merge $changes (dict "namespace" .Release.Namespace) -}}
{{- end -}}
{{- if $changes -}}
{{ mergeOverwrite (fromYaml $text) $changes | toYaml }}
{{- else -}}
{{ $text }}
{{- end -}}
{{- end -}}

{{/* A dry run writes nothing, and reads Kueue's Configuration: values that it would ignore are refused. */}}
{{- define "kueuecore.check" -}}
{{- if eq .Values.mode "dryRun" -}}
{{- range $name := list "webhooks" "admissionPolicies" "visibility" "multikueue" "rolesForPeople" -}}
{{- if (get $.Values $name).enabled -}}
{{- fail (printf "values: %s.enabled: a dry run has none: set it to false, or mode to serve" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name := list "configuration" "forecast" -}}
{{- if get $.Values $name -}}
{{- fail (printf "values: %s: a dry run has none: leave it out, or set mode to serve" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Arguments of `kueuecore serve` that values stand for. */}}
{{- define "kueuecore.args" -}}
{{- $args := list -}}
{{- if eq .Values.mode "serve" -}}
{{- if .Values.webhooks.enabled -}}{{- $args = append $args "--webhooks" -}}{{- end -}}
{{- if eq .Values.forecast "metrics" -}}{{- $args = append $args "--forecast" -}}{{- end -}}
{{- if eq .Values.forecast "annotate" -}}{{- $args = append $args "--forecast=annotate" -}}{{- end -}}
{{- end -}}
{{- with .Values.kueue -}}{{- $args = append $args (printf "--kueue=%s" .) -}}{{- end -}}
{{ concat $args .Values.extraArgs | toYaml }}
{{- end -}}
