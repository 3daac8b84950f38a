import { engineLoadOf } from '../../../inference/proxy/engine-load';

describe('the load in metrics of an engine', () => {
  it('is read over all series, with and without labels', () => {
    const page =
      '# HELP vllm:num_requests_waiting Waiting.\nvllm:num_requests_waiting{m="a } 9"} 3.0 17\n' +
      'vllm:num_requests_waiting{m="b"} 1e0\nvllm:kv_cache_usage_perc 0.25\r\n' +
      'vllm:kv_cache_usage_perc{m="b"} 0.5\nvllm:num_requests_waiting_by_reason{r="x"} 99\n';
    expect(engineLoadOf(page)).toEqual({ waiting: 4, cacheUse: 0.5 });
  });

  it('is read with the older name of the cache use', () => {
    const page = 'vllm:num_requests_waiting 0\nvllm:gpu_cache_usage_perc 0.75';
    expect(engineLoadOf(page)).toEqual({ waiting: 0, cacheUse: 0.75 });
  });

  it.each([
    ['either is missing', 'vllm:num_requests_waiting 3\n'],
    ['a value is not a number', 'vllm:num_requests_waiting NaN\nvllm:kv_cache_usage_perc 0\n'],
    ['a value is missing', 'vllm:num_requests_waiting 1\nvllm:kv_cache_usage_perc{a="b"}\n'],
    ['the page is something else', '<html>'],
  ])('is unknown if %s', (_, page) => {
    expect(engineLoadOf(page)).toBeNull();
  });
});
