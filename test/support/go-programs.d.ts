import type { GoProgram } from '../../embedded/binaries/go-program';

/** Prometheus' tool that checks and tests alert rules. */
export const PROMTOOL: GoProgram;

/** Renders the chart in deploy/helm. */
export const HELM: GoProgram;
