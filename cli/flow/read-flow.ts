import type { FlowPage } from '../../platform/flow-page';
import { readAdminPage } from './read-page';

/** Reads `/admin/flow` of the gateway at the base URL of its observability port. @throws what {@link readAdminPage} throws */
export function readFlow(url: string, signal?: AbortSignal): Promise<FlowPage> {
  return readAdminPage({ url, path: '/admin/flow', isPage: isFlowPage }, signal);
}

function isFlowPage(page: object): page is FlowPage {
  return 'pools' in page && Array.isArray(page.pools);
}
