import { resolve } from 'node:path';
import type { DataConverter, PayloadCodec } from '@temporalio/common';
import { NightshiftError } from '../core/errors';
import type { TemporalConfig } from './temporal-credentials';

/**
 * Encodes payloads for Temporal with the module that `temporal.payload_codec` names; null if it names
 * none. Failure messages go through the codec as well. The workflow bundle does not change, because
 * codecs run outside the sandbox (docs/design/temporal.md#payload-codec). @throws config_invalid
 */
export function loadDataConverter(
  config: Pick<TemporalConfig, 'payload_codec'>,
): DataConverter | null {
  const { payload_codec: path } = config;
  if (path === undefined) return null;
  return {
    payloadCodecs: [loadCodec(resolve(path))],
    failureConverterPath: require.resolve('./failure-converter'),
  };
}

function loadCodec(path: string): PayloadCodec {
  let module: unknown;
  try {
    // eslint-disable-next-line @typescript-eslint/no-require-imports
    module = require(path);
  } catch (cause) {
    const reason = (cause as Error).message.split('\n', 1)[0] ?? '';
    throw invalid(path, `cannot be loaded (${reason})`, cause);
  }
  const codec = (module as { payloadCodec?: unknown } | null)?.payloadCodec;
  if (!isCodec(codec)) {
    throw invalid(path, 'must export payloadCodec, an object with the methods encode and decode');
  }
  return codec;
}

function isCodec(value: unknown): value is PayloadCodec {
  if (typeof value !== 'object' || value === null) return false;
  const { encode, decode } = value as Partial<Record<keyof PayloadCodec, unknown>>;
  return typeof encode === 'function' && typeof decode === 'function';
}

function invalid(path: string, message: string, cause?: unknown): NightshiftError {
  const text = `temporal.payload_codec: ${path} ${message}`;
  return new NightshiftError('config_invalid', text, { cause });
}
