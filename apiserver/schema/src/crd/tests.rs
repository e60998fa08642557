//! Texts are what a real kube-apiserver answered.
