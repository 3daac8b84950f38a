import fc from 'fast-check';
import { nextToCreate, type TenantDemand } from '../../../core/delegation/quota';

const demand = (tenant: string, over: Partial<TenantDemand> = {}): TenantDemand => ({
  ...{ tenant, openJobs: 0, openTokens: 0, waiting: [{ id: `job-${tenant}`, tokens: 10 }] },
  ...over,
});

describe('the quota of an account', () => {
  it('goes to the tenant with the fewest open tokens', () => {
    const tenants = [
      demand('a', { openJobs: 1, openTokens: 30 }),
      demand('b', { openJobs: 4, openTokens: 20 }),
    ];
    expect(nextToCreate(tenants, { maxOpenJobs: 6 })).toEqual(['job-b']);
    expect(nextToCreate(tenants, { maxOpenJobs: 5 })).toEqual([]);
  });

  it('goes to no smaller job of another tenant if the next one does not fit', () => {
    const tenants = [
      demand('a', { openJobs: 1, openTokens: 50, waiting: [{ id: 'small', tokens: 1 }] }),
      demand('b', { waiting: [{ id: 'large', tokens: 60 }] }),
    ];
    expect(nextToCreate(tenants, { maxEnqueuedTokens: 100 })).toEqual([]);
    expect(nextToCreate(tenants, { maxEnqueuedTokens: 110 })).toEqual(['large']);
    expect(nextToCreate(tenants, { maxEnqueuedTokens: 111 })).toEqual(['large', 'small']);
  });

  it('is given to a job that exceeds it by itself once nothing else is open', () => {
    const large = { waiting: [{ id: 'large', tokens: 500 }] };
    expect(nextToCreate([demand('a', large)], { maxEnqueuedTokens: 100 })).toEqual(['large']);
    const busy = [demand('a', large), demand('b', { openJobs: 1, openTokens: 1, waiting: [] })];
    expect(nextToCreate(busy, { maxEnqueuedTokens: 100 })).toEqual([]);
  });

  it('has room for as many jobs as are free, whichever asks first', () => {
    const waiting = ['a1', 'a2', 'a3', 'a4'].map((id) => ({ id, tokens: 10 }));
    const tenants = [demand('a', { openJobs: 1, openTokens: 5, waiting }), demand('b')];
    expect(nextToCreate(tenants, { maxOpenJobs: 4 })).toEqual(['job-b', 'a1', 'a2']);
  });

  it('is given to nobody if nothing waits', () => {
    expect(nextToCreate([demand('a', { waiting: [] })], {})).toEqual([]);
    expect(nextToCreate([], {})).toEqual([]);
  });

  it('lets the jobs of all tenants run in turn until none waits, in whatever order they are read', () => {
    const job = fc.integer({ min: 1, max: 50 });
    const queues = fc.array(fc.array(job, { maxLength: 5 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        queues,
        fc.integer({ min: 1, max: 3 }),
        fc.boolean(),
        (all, maxOpenJobs, turn) => {
          const waiting = all.map((jobs) => [...jobs]);
          const open: { tenant: number; tokens: number }[] = [];
          const limits = { maxOpenJobs, maxEnqueuedTokens: 60 };
          for (let left = all.flat().length; left > 0;) {
            const tenants = waiting.map((jobs, tenant) => {
              const mine = open.filter((one) => one.tenant === tenant);
              return demand(String(tenant), {
                openJobs: mine.length,
                openTokens: mine.reduce((sum, one) => sum + one.tokens, 0),
                waiting: jobs.map((tokens, i) => ({ id: `${tenant}/${i}`, tokens })),
              });
            });
            const next = nextToCreate(turn ? tenants.reverse() : tenants, limits);
            if (next.length === 0) {
              // One of the open jobs ends. An empty account always has room.
              expect(open.shift()).toBeDefined();
              continue;
            }
            // Any of those that have room may ask first. What the others then have is theirs still.
            const [tenant = 0, i = 0] = (next.at(-1) ?? '').split('/').map(Number);
            open.push({ tenant, tokens: waiting[tenant]?.splice(i, 1)[0] ?? 0 });
            left--;
            const tokens = open.reduce((sum, one) => sum + one.tokens, 0);
            if (open.length > 1) expect(tokens).toBeLessThanOrEqual(60);
            expect(open.length).toBeLessThanOrEqual(maxOpenJobs);
          }
        },
      ),
    );
  });
});
