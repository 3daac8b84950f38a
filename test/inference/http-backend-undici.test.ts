/** The same tests once more, with the other client. */
import { useHttpClient } from './backend-fixtures';
import './http-backend.test';
import './http-backend-failures.test';

beforeAll(() => useHttpClient('undici'));
