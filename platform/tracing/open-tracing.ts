import { NightshiftError } from '../../core/errors';
import { redactUrl } from '../config-redact';
import type { Config } from '../config-schema';
import type * as Sdk from './sdk-tracing';
import type { TracedProcess, Tracing } from './tracing';

/**
 * Starts tracing; null if `otlp_endpoint` is not set. The libraries are loaded only if it is set.
 * @throws config_invalid for an endpoint that is not a URL
 */
export function openTracing(settings: Config['tracing'], traced: TracedProcess): Tracing | null {
  const { otlp_endpoint: endpoint } = settings;
  if (endpoint === undefined || endpoint === '') return null;
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- loaded only if it is used
  const { createSdkTracing } = require('./sdk-tracing') as typeof Sdk;
  try {
    return createSdkTracing({ ...settings, endpoint }, traced);
  } catch (cause) {
    const message = `tracing.otlp_endpoint: ${redactUrl(endpoint)} is not a URL such as http://127.0.0.1:4317.`;
    throw new NightshiftError('config_invalid', message, { cause });
  }
}
