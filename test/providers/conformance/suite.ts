import { describeFailures, describeLookUps } from './creates';
import { describeEnds, describeLife } from './jobs';
import { describeResults } from './results';
import { ALL_TRAITS, type CallNames, type HostTraits, type OpenHost } from './steps';

/** What every adapter must do, at the simulated provider of its type. */
export function describeConformance(
  name: string,
  names: CallNames,
  openHost: OpenHost,
  traits: HostTraits = ALL_TRAITS,
): void {
  describe(`the adapter ${name} at its simulated provider`, () => {
    describeLife(openHost, traits);
    describeLookUps(names, openHost);
    describeFailures(names, openHost);
    describeResults(names, openHost, traits);
    describeEnds(openHost, traits);
  });
}
