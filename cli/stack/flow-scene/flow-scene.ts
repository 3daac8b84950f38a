import { setMaxListeners } from 'node:events';
import { writeFileSync } from 'node:fs';
import { NightshiftError } from '../../../core/errors';
import { installSignals } from '../../../platform/shutdown';
import { say, sayError, table } from '../../output';
import { measureCapacity } from './measure-capacity';
import { runArm, type Answer, type ArmRecord } from './run-arm';
import { figuresOf, LEAD_MS, sceneTable, secondLine, type ArmFigures } from './scene-figures';
import { ARMS, ENGINES, SLOTS, type Arm } from './scene-plan';
import { startSceneServers, type SceneServers } from './scene-servers';

/** Flags of the scene. */
export interface FlowSceneFlags {
  /** Length of each arm, s. */
  readonly seconds?: number;
  /** File that gets every answer, as JSON. */
  readonly record?: string;
}

/** What `--record` writes. */
export interface SceneRecord {
  /** Answers per second of the engines at the knee. */
  readonly capacity: number;
  readonly figures: readonly ArmFigures[];
  readonly arms: readonly (ArmRecord & { readonly name: string })[];
}

const DEFAULT_SECONDS = 22;
const CAPACITY_MS = 4_000;
const FORCED_EXIT = 130;

/**
 * `nightshift demo --scene flow`: users beside a batch, without and with the gateway (docs/gateway.md#see-it). Its batch
 * is a driver that keeps as many lines open as a worker would: a whole stack would take longer to start than the
 * scene takes.
 */
export async function runFlowScene(flags: FlowSceneFlags): Promise<void> {
  const abort = new AbortController();
  // Every open request listens.
  setMaxListeners(0, abort.signal);
  installSignals({
    drain: () => abort.abort(),
    force: () => process.exit(FORCED_EXIT),
  });
  try {
    await playScene(flags, abort.signal);
  } catch (error) {
    if (!abort.signal.aborted) sayError(error);
    process.exitCode = 1;
  }
}

async function playScene({ seconds, record }: FlowSceneFlags, signal: AbortSignal): Promise<void> {
  say(`starting ${ENGINES} simulated engines with ${SLOTS} slots each, and a gateway`);
  const servers = await startSceneServers(signal);
  try {
    const capacity = await measureCapacity(servers, CAPACITY_MS, signal);
    if (capacity === 0) throw new NightshiftError('unavailable', 'The engines do not answer.');
    say(`the engines answer ${capacity.toFixed(0)} requests per second at most`);
    const arms: (ArmRecord & { name: string })[] = [];
    for (const arm of ARMS) {
      const played = await play(arm, {
        servers,
        capacity,
        signal,
        seconds: seconds ?? DEFAULT_SECONDS,
      });
      arms.push({ name: arm.name, ...played });
    }
    const figures = arms.map((one) => figuresOf(one.name, one, capacity));
    process.stdout.write(`${table(sceneTable(figures))}\n`);
    say(`the first ${LEAD_MS / 1_000} s of each part do not count`);
    const written: SceneRecord = { capacity, figures, arms };
    if (record !== undefined) writeFileSync(record, `${JSON.stringify(written)}\n`);
  } finally {
    await servers.stop();
  }
}

interface Stage {
  readonly servers: SceneServers;
  readonly capacity: number;
  readonly signal: AbortSignal;
  readonly seconds: number;
}

/** Runs an arm. On a terminal, each second is shown as it passes. */
async function play(arm: Arm, { seconds, ...stage }: Stage): Promise<ArmRecord> {
  say(arm.name);
  let times: number[] = [];
  let lines = 0;
  let second = 0;
  const show = (): void => {
    process.stderr.write(`${secondLine(++second, times, lines)}\n`);
    times = [];
    lines = 0;
  };
  const timer = process.stderr.isTTY ? setInterval(show, 1_000) : null;
  const onAnswer = ({ isUser, ttftMs }: Answer): void => {
    if (isUser) times.push(ttftMs);
    else lines++;
  };
  try {
    return await runArm({ arm, ...stage, durationMs: 1_000 * seconds, onAnswer });
  } finally {
    if (timer !== null) clearInterval(timer);
  }
}
