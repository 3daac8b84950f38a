export { batchWorkflow } from './batch';
export { deliverLateWorkflow, reconcileWorkflow, sweepWorkflow } from './maintenance';
