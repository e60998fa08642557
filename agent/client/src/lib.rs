//! How programs of kcp-rs reach a Kubernetes API server: HTTP/2 connections with a bounded number
//! of streams.
