/** How busy an inference engine says that it is. */
export interface EngineLoad {
  /** Requests that wait in the engine. */
  readonly waiting: number;
  /** Use of the KV cache, between 0 and 1. */
  readonly cacheUse: number;
}

const WAITING = 'vllm:num_requests_waiting';
/** The name of the cache's use, and the one of vLLM before version 0.10. */
const CACHE_USE = ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'];

/**
 * The load in a page of metrics in Prometheus' text format, with the names of vLLM; null if either is missing. An
 * engine may have several series of a name: waiting requests are added up, and the fullest cache counts.
 */
export function engineLoadOf(page: string): EngineLoad | null {
  let waiting: number | null = null;
  let cacheUse: number | null = null;
  for (const line of page.split('\n')) {
    if (!line.startsWith('vllm:')) continue;
    const name = /^[\w:]+/.exec(line)?.[0] ?? '';
    if (name === WAITING) waiting = (waiting ?? 0) + valueOf(line, name);
    else if (CACHE_USE.includes(name)) cacheUse = Math.max(cacheUse ?? 0, valueOf(line, name));
  }
  const isKnown = Number.isFinite(waiting) && Number.isFinite(cacheUse);
  return isKnown && waiting !== null && cacheUse !== null ? { waiting, cacheUse } : null;
}

/** The value of a sample: after the name and its labels, before an optional time. */
function valueOf(line: string, name: string): number {
  const from = line[name.length] === '{' ? line.lastIndexOf('}') + 1 : name.length;
  return Number(line.slice(from).trim().split(' ', 1)[0] || Number.NaN);
}
