# One image for every process: docker run nightshift api | worker | migrate | simulator | doctor
FROM node:22-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
RUN node cli/build.js && npm prune --omit=dev

FROM node:22-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
# Without tsconfig.build.json the executable takes dist/ as it is and installs nothing.
COPY --from=build /build/package.json ./
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
COPY --from=build /build/cli/nightshift.js /build/cli/prepare.js ./cli/
COPY --from=build /build/storage/postgres/migrations ./storage/postgres/migrations
RUN mkdir /data && chown node:node /data
VOLUME /data
USER node
# Signals go straight to Node, which drains; give it longer than worker.drain_budget.
ENTRYPOINT ["node", "cli/nightshift.js"]
CMD ["--help"]
