import { describeFailures, describeLookUps } from './creates';
import { describeEnds, describeLife } from './jobs';
import { describeRecordings } from './recordings';
import { describeResults } from './results';
import {
  ALL_TRAITS,
  recordings,
  runWith,
  type CallNames,
  type HostTraits,
  type OpenHost,
} from './steps';

/** What every adapter must do, at the simulated provider of its type. */
export function describeConformance(
  name: string,
  names: CallNames,
  openHost: OpenHost,
  traits: HostTraits = ALL_TRAITS,
): void {
  describe(`the adapter ${name} at its simulated provider`, () => {
    describeLife(openHost, traits);
    describeLookUps(names, openHost, traits);
    describeFailures(names, openHost, traits);
    describeResults(names, openHost, traits);
    describeEnds(openHost, traits);
  });
}

/** What every adapter of recordings must do. @param wireIds of the lines of a job */
export function describeRecordingConformance(
  name: string,
  { names, traits, wireIds }: { names: CallNames; traits: HostTraits; wireIds: readonly string[] },
  openHost: OpenHost,
): void {
  describe(`the adapter ${name} at its simulated provider`, () => {
    beforeAll(() => runWith(recordings(wireIds)));
    describeRecordings(names, openHost, traits);
    describeLookUps(names, openHost, traits);
    describeFailures(names, openHost, traits);
  });
}
