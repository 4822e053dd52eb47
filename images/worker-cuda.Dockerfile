# The worker with a trainer that was built for CUDA: the CPU worker's image with that trainer, and the CUDA libraries that it needs, over it.
# The driver's own libraries come from the node, by its container runtime. images/build.sh makes this image only where the tree has built
# such a trainer; the CPU trainer is never packed under this name.
ARG WORKER=ringmaster-worker
FROM ${WORKER}
COPY worker-cuda/ /
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="ringmaster-worker-cuda" \
      org.opencontainers.image.description="The launcher and the native trainer of a TrainingJob's worker, on CUDA." \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
