# The operator. Its context is made by images/build.sh.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
COPY operator/ /
# It starts on this base.
RUN ["/usr/local/bin/ringmaster-operator", "--help"]
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/ringmaster-operator"]
ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="ringmaster-operator" \
      org.opencontainers.image.description="Runs TrainingJobs on a Kubernetes cluster." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
