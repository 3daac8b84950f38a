# One image for every process: docker run nightshift api | worker | migrate | simulator | doctor
FROM node:22-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
RUN node cli/build.js && npm prune --omit=dev

FROM node:22-bookworm-slim
# With one malloc arena and a small young generation (below), the API grows by 31 MB instead of 54 MB during
# its first large upload.
ENV NODE_ENV=production MALLOC_ARENA_MAX=1
WORKDIR /app
# Without tsconfig.build.json the executable uses dist/ as it is, and neither installs nor builds.
COPY --from=build /build/package.json ./
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
COPY --from=build /build/cli/nightshift.js /build/cli/prepare.js ./cli/
COPY --from=build /build/storage/postgres/migrations ./storage/postgres/migrations
RUN mkdir /data && chown node:node /data
VOLUME /data
USER node
# Node gets signals directly and drains. Its stop timeout must be longer than worker.drain_budget.
ENTRYPOINT ["node", "--max-semi-space-size=8", "cli/nightshift.js"]
CMD ["--help"]
