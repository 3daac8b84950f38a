import { openHost } from '../conformance/open-host';
import { FILE_CALLS } from '../conformance/steps';
import { describeConformance } from '../conformance/suite';
import { closeHosts } from '../simulated-host';

afterEach(closeHosts);

describeConformance('openai', FILE_CALLS, () => openHost({ type: 'openai' }, 'openai/v1'));
