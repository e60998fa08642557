//! A minimal Kubernetes API server with many cheap, isolated logical clusters.
