import { AsyncLocalStorage } from 'node:async_hooks';
import { createContext, runInContext } from 'node:vm';
import { Runtime } from '@temporalio/worker';
import { workflowBundle } from './play-scenario';

/** What the bundle gives to the SDK. */
interface Sandbox {
  readonly __TEMPORAL__: { importInterceptors(): unknown[]; importWorkflows(): object };
}

describe('the workflow bundle', () => {
  afterAll(() => Runtime.instance().shutdown());

  it('has few modules that are evaluated again for each workflow', async () => {
    const modules = new Map<string | symbol, unknown>();
    const cache = new Proxy(
      {},
      {
        get: (_, name) => modules.get(name),
        set: (_, name, module) => modules.set(name, module) === modules,
      },
    );
    const sandbox = createContext({ AsyncLocalStorage, __webpack_module_cache__: cache });
    const bundle = await workflowBundle();
    runInContext('code' in bundle ? bundle.code : '', sandbox);
    // These are evaluated once.
    const shared = modules.size;

    const { importInterceptors, importWorkflows } = (sandbox as unknown as Sandbox).__TEMPORAL__;
    const [{ interceptors }] = importInterceptors() as [{ interceptors: () => object }];
    expect(Object.keys(interceptors())).toEqual(['inbound', 'outbound', 'internals']);
    expect(modules.size - shared).toBeLessThan(60);

    expect(Object.keys(importWorkflows())).toContain('batchWorkflow');
    expect(modules.size - shared).toBeLessThan(120);
  }, 90_000);
});
