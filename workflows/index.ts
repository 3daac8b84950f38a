export { batchWorkflow } from './batch';
