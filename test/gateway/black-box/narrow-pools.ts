import type { Json } from './client';
import { ONE_AT_A_TIME, poolOf, ScriptedBackend } from './outside';

/** Pools by name, each with a backend of its own that has one request at a time. */
export interface NarrowPools<Name extends string> {
  readonly pools: Json;
  readonly backends: Readonly<Record<Name, ScriptedBackend>>;
}

/** Starts a backend for each of these `fair_request_queue` sections, and makes the section `pools` of them. */
export async function narrowPools<Name extends string>(
  queues: Readonly<Record<Name, object>>,
): Promise<NarrowPools<Name>> {
  const backends = {} as Record<Name, ScriptedBackend>;
  let pools: Json = {};
  for (const name of Object.keys(queues) as Name[]) {
    const backend = await ScriptedBackend.start();
    backends[name] = backend;
    const settings = { ...ONE_AT_A_TIME, fair_request_queue: queues[name] };
    pools = { ...pools, ...poolOf(name, [backend], settings) };
  }
  return { pools, backends };
}
