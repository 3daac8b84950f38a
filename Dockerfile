# One image for every process: docker run nightshift api | worker | gateway | migrate | simulator | doctor
#
# Base images are pinned by version and digest, so that a build today and one next year start from the same
# files. docs/releasing.md says how to renew a digest.
FROM node:22.23.2-bookworm-slim@sha256:83f487e0a63425e5b4d146fb5e5be574bcbe1b7b843d3ebafdd95eaf7767a7e5 AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
# No install scripts: the optional packages that have some are removed below.
RUN npm ci --ignore-scripts
COPY . .
RUN node cli/build.js
# Optional packages are PostgreSQL, which only dev and demo start, and compilers, which only the build uses.
RUN npm prune --omit=dev --omit=optional --ignore-scripts
# Temporal's SDK brings a native library of 30 MB for each of five platforms.
RUN cd node_modules/@temporalio/core-bridge/releases && find . -mindepth 1 -maxdepth 1 \
      ! -name "$(node -p "require('../common').getPrebuiltTargetName()")" -exec rm -r {} +

FROM node:22.23.2-bookworm-slim@sha256:83f487e0a63425e5b4d146fb5e5be574bcbe1b7b843d3ebafdd95eaf7767a7e5
LABEL org.opencontainers.image.title="nightshift" \
      org.opencontainers.image.description="Durable batch inference: OpenAI's Files, Uploads and Batches API on Temporal" \
      org.opencontainers.image.licenses="Apache-2.0"
# With one malloc arena and a small young generation (below), the API grows by 31 MB instead of 54 MB during
# its first large upload.
ENV NODE_ENV=production MALLOC_ARENA_MAX=1
WORKDIR /app
# Without tsconfig.build.json the executable uses dist/ as it is, and neither installs nor builds.
COPY --from=build /build/package.json /build/LICENSE ./
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
COPY --from=build /build/cli/nightshift.js /build/cli/prepare.js ./cli/
COPY --from=build /build/storage/postgres/migrations ./storage/postgres/migrations
COPY --from=build /build/deploy/health-check.js ./deploy/
# The only folders that a process writes to, besides /tmp: objects of a filesystem store, blocks of S3 objects.
RUN mkdir /data /cache && chown node:node /data /cache
VOLUME ["/data", "/cache"]
# By number, so that Kubernetes can verify that it is not root.
USER 1000:1000
# Kubernetes ignores this and uses the probes of the chart.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s CMD ["node", "deploy/health-check.js"]
# Node is process 1 and gets signals directly: SIGTERM drains. An init is not needed, because the processes
# start no others, so there is nothing to reap. The stop timeout must be longer than worker.drain_budget.
# The second flag keeps the compiled code of a worker that rests for less than 10 minutes. NODE_OPTIONS may not hold it.
ENTRYPOINT ["node", "--max-semi-space-size=8", "--gc-memory-reducer-start-delay-ms=600000", "cli/nightshift.js"]
CMD ["--help"]
