// Definitions of custom types that many clusters have. Only the files of these modules are read.
module field-crds

go 1.26

require (
	github.com/argoproj/argo-cd/v3 v3.5.0
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
	sigs.k8s.io/gateway-api v1.6.0
)
