# Images of kcp-rs's programs, each with one static binary and nothing else.
#
#   docker build --build-arg PROGRAM=kcp-agent --build-arg PACKAGE=agent --tag kcp-agent .
#
# `cargo xtask image` writes the same images without a container engine.
FROM rust:1.95.0-bookworm AS build
ARG PACKAGE=agent
ARG PROGRAM=kcp-agent
WORKDIR /source
COPY . .
ENV CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static"
RUN cargo build --release --locked --target x86_64-unknown-linux-gnu --package "$PACKAGE" --bin "$PROGRAM" \
    && cp "target/x86_64-unknown-linux-gnu/release/$PROGRAM" /program

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /program /program
USER 65532:65532
ENTRYPOINT ["/program"]
