import { describeFailures, describeLookUps } from './creates';
import { describeEnds, describeLife } from './jobs';
import { describeResults } from './results';
import type { CallNames, OpenHost } from './steps';

/** What every adapter must do, at the simulated provider of its type. */
export function describeConformance(name: string, names: CallNames, openHost: OpenHost): void {
  describe(`the adapter ${name} at its simulated provider`, () => {
    describeLife(openHost);
    describeLookUps(names, openHost);
    describeFailures(names, openHost);
    describeResults(names, openHost);
    describeEnds(openHost);
  });
}
