import { mkdirSync, rmdirSync } from 'node:fs';
import type OpenAI from 'openai';
import type { Client as Postgres } from 'pg';
import { manifestKey } from '../../core/names/object-names';
import type { RecordingBackend } from '../support/recording-backend';
import { chatLines, createBatch, submit, untilTerminal, upload } from '../support/stack';
import { until } from '../support/until';
import type { ProxiedStack } from './proxied-stack';

/** A phase of a batch in which it can be held. */
export type Phase = 'before the workflow starts' | 'validating' | 'in progress' | 'finalizing';

/** What holds batches. */
export interface PhaseScene {
  readonly proxied: ProxiedStack;
  readonly backend: RecordingBackend;
  /** A connection that keeps a lock while a batch is validating. */
  readonly holder: Postgres;
  /** Lines of each batch. */
  readonly lines: number;
}

interface Order {
  readonly scene: PhaseScene;
  readonly client: OpenAI;
  /** The input file. */
  readonly text: string;
  readonly window: string;
}

/** First half of the lock that ingestion takes if tenants have limits. */
const TENANT_LOCK = 720_511;
/** Requests after which a batch counts as in progress. */
const SOME_REQUESTS = 10;

/** A batch that is held in a phase, and how to let it go on. */
export interface HeldBatch {
  readonly id: string;
  release(): Promise<unknown>;
}

/** Brings a batch into a phase and keeps it there. */
const PHASES: Record<Phase, (order: Order) => Promise<HeldBatch>> = {
  'before the workflow starts': async ({ scene, client, text, window }) => {
    await scene.proxied.temporalProxy.become('refuse');
    const { id } = await submit(client, text, window);
    return { id, release: () => scene.proxied.temporalProxy.become('pass') };
  },
  validating: async ({ scene, client, text, window }) => {
    const file = await upload(client, text);
    // Ingestion counts the requests of a tenant one batch at a time.
    await scene.holder.query('begin');
    await scene.holder.query(`select pg_advisory_xact_lock($1, hashtext('default'))`, [
      TENANT_LOCK,
    ]);
    const { id } = await createBatch(client, file.id, window);
    const isPending = async () => (await pendingActivities(scene, id)).includes('ingest');
    await until(isPending, 20_000, 'ingestion');
    return { id, release: () => scene.holder.query('rollback') };
  },
  'in progress': async ({ scene, client, text, window }) => {
    const { id, expires_at: endSec } = await submit(client, text, window);
    const isThere = () => scene.backend.seen.length > SOME_REQUESTS || isOver(endSec);
    await until(isThere, 20_000, 'answers');
    return { id, release: () => Promise.resolve() };
  },
  finalizing: async ({ scene, client, text, window }) => {
    const { id, expires_at: endSec } = await submit(client, text, window);
    await until(() => scene.backend.seen.length > 0 || isOver(endSec), 20_000, 'a first request');
    // A folder blocks the place of the manifest.
    const place = scene.proxied.stack.objectPath(manifestKey(id));
    mkdirSync(place);
    scene.backend.latencyMs = 5;
    const isThere = async () =>
      (await client.batches.retrieve(id)).status === 'finalizing' || isOver(endSec);
    await until(isThere, 20_000, 'finalizing');
    return { id, release: () => Promise.resolve(rmdirSync(place)) };
  },
};

/** Creates a batch and holds it in a phase. */
export function holdBatch(scene: PhaseScene, phase: Phase, window = '24h'): Promise<HeldBatch> {
  const { client } = scene.proxied.stack;
  return PHASES[phase]({ scene, client, text: chatLines(scene.lines), window });
}

/** The same, before a short window ends. A busy machine gets a longer window. */
export async function holdInTime(
  scene: PhaseScene,
  phase: 'in progress' | 'finalizing',
): Promise<HeldBatch> {
  const { backend, proxied } = scene;
  const { client } = proxied.stack;
  const { latencyMs } = backend;
  for (let windowSec = 3; ; windowSec *= 2) {
    const held = await holdBatch(scene, phase, `${windowSec}s`);
    if (!isOver((await client.batches.retrieve(held.id)).expires_at)) return held;
    await held.release();
    await untilTerminal(client, held.id);
    Object.assign(backend, { latencyMs }).seen.length = 0;
  }
}

function isOver(endSec: number | null | undefined): boolean {
  return Date.now() >= (endSec ?? 0) * 1000;
}

async function pendingActivities(scene: PhaseScene, id: string): Promise<string[]> {
  const description = await scene.proxied.temporal.workflow
    .getHandle(id)
    .describe()
    .catch(() => null);
  return (description?.raw.pendingActivities ?? []).map(({ activityType }) =>
    String(activityType?.name),
  );
}
