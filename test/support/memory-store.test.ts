import { describeObjectStore } from '../storage/objects/object-store-conformance';
import { createMemoryStore } from './memory-store';

describe('the store in memory as an object store', () => {
  describeObjectStore(async () => createMemoryStore());
});
