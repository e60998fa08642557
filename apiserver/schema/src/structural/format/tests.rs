//! Asked from kube-apiserver's formats.
