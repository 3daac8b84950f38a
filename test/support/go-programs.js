'use strict';

/** Programs that only tests need, built with Go. Also read by `test/run.js`, which builds them visibly. */

/**
 * Prometheus' tool that checks and tests alert rules. Its discovery of targets in clouds is left out: it would
 * triple the size of the build.
 */
const PROMTOOL = {
  name: 'promtool',
  title: 'rule tester promtool',
  package: 'github.com/prometheus/prometheus/cmd/promtool',
  version: 'v0.313.5',
  needsWrapper: true,
  tags: ['remove_all_sd', 'enable_dns_sd'],
  versionArguments: ['--version'],
  buildTime: '3 minutes',
};

/** Renders the chart in deploy/helm. */
const HELM = {
  name: 'helm',
  title: 'Helm',
  package: 'helm.sh/helm/v3/cmd/helm',
  version: 'v3.22.0',
  versionArguments: ['version'],
  buildTime: '2 minutes',
};

module.exports = { HELM, PROMTOOL };
