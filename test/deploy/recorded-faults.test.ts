import { describeWithGoTool, findGoTool, GO_TOOL_MS } from '../support/go-tool';
import { alertRules } from './alert-rules';
import { metricsPage, unknownIn } from './metrics-page';
import { selectorsOf } from './promql-names';
import { testRules } from './promtool';
import { readRecording, RECORDINGS, type RecordedPhase } from './recording';
import { BESIDE_GATEWAY, FIRING, MADE_BY_HAND } from './recorded-faults';

const recordings = RECORDINGS.map((name) => [name, readRecording(name)] as const);

describeWithGoTool('promtool', 'the alert rules, evaluated on recorded faults', () => {
  let program = '';
  beforeAll(async () => {
    program = (await findGoTool('promtool')) ?? '';
  }, GO_TOOL_MS);

  it.each(recordings)(
    'fire in their fault and are silent without it: %s',
    (name, { phases, series }) => {
      const firing = FIRING[name];
      expect(phases.map((phase) => phase.name)).toEqual(Object.keys(firing));
      const ends = phases.map((phase) => ({ atMin: phase.to, firing: firing[phase.name] ?? [] }));
      const all = name === 'gateway' ? { ...BESIDE_GATEWAY, ...series } : series;
      testRules(program, [{ name, series: all, expected: [...silence(phases[0]), ...ends] }]);
    },
  );

  it.each(MADE_BY_HAND.map((test) => [test.name, test] as const))(
    'fire and are silent on series that no run can show: %s',
    (_name, test) => testRules(program, [test]),
  );

  it('show a difference if an alert fires unexpectedly', () => {
    const [name, { series }] = recordings[0] as (typeof recordings)[number];
    const expected = [{ atMin: 2, firing: ['NightshiftApiDown'] }];
    expect(() => testRules(program, [{ name, series, expected }])).toThrow('NightshiftApiDown');
  });
});

describe('the recordings', () => {
  it('contain a fault for each alert', () => {
    const fired = [
      ...Object.values(FIRING).flatMap((phases) => Object.values(phases).flat()),
      ...MADE_BY_HAND.flatMap(({ expected }) => expected.flatMap(({ firing }) => firing)),
    ];
    const names = alertRules().map(({ alert }) => alert);
    expect([...new Set(fired)].sort()).toEqual(names.sort());
  });

  it.each(recordings)('have series and labels that docs/metrics.md has: %s', (_name, recording) => {
    const page = metricsPage();
    const selectors = Object.keys(recording.series).flatMap(selectorsOf);
    expect(selectors.length).toBe(Object.keys(recording.series).length);
    // Values such as names of models and queues are those of the run.
    const withoutValues = selectors.map(({ name, matchers }) => {
      return { name, matchers: matchers.map((matcher) => ({ ...matcher, value: '' })) };
    });
    expect(withoutValues.flatMap((selector) => unknownIn(selector, page))).toEqual([]);
  });
});

/** No alert fires at any minute of a run's begin, in which nothing is wrong. */
function silence(phase: RecordedPhase | undefined): { atMin: number; firing: [] }[] {
  return Array.from({ length: phase?.to ?? 0 }, (_, atMin) => ({ atMin, firing: [] }));
}
