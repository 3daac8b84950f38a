import { InvalidArgumentError } from 'commander';
import { loadConfig } from '../../platform/config';
import { configFile, type ConfigFlag } from '../config-flag';
import { lazy } from '../lazy-modules';
import { reportVerdicts } from './replay-report';

/** Flags of `nightshift replay`. */
export interface ReplayFlags extends ConfigFlag {
  readonly limit?: number;
  /** A filter of Temporal's visibility. */
  readonly query?: string;
}

/** Help text on the exit status. */
export const REPLAY_EXIT_HELP = `
Exit status:
    0  every open workflow replays: this release can take over
    1  wrong usage, or the check could not be made
    2  at least one workflow diverges: do not deploy this release`;

/**
 * `nightshift replay --open`: prints one line for each open workflow, and a summary.
 * @throws temporal_unavailable, invalid_request, config_invalid
 */
export async function runReplayCommand({ limit, query, ...flags }: ReplayFlags): Promise<void> {
  const config = loadConfig({ ...configFile(flags), needs: [] });
  const client = lazy.connection().openClient(config.temporal);
  const filter = query === undefined ? {} : { filter: query };
  try {
    const running = await lazy.openHistories().countOpenWorkflows(client, filter);
    const bound = limit === undefined ? {} : { limit };
    const verdicts = lazy.replayOpen().replayOpen({ config, client, ...filter, ...bound });
    await reportVerdicts(verdicts, { running, limit });
  } finally {
    await client.connection.close();
  }
}

/** A positive whole number. */
export function parseLimit(text: string): number {
  const limit = Number(text);
  if (Number.isSafeInteger(limit) && limit > 0) return limit;
  throw new InvalidArgumentError('give a whole number above 0');
}
