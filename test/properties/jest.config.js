/** The usual tests with more runs of each property (run.js sets the variables that setup.js reads). */
module.exports = {
  ...require('../../jest.config.js'),
  rootDir: '../..',
  testEnvironment: '<rootDir>/test/properties/environment.js',
  setupFilesAfterEnv: ['<rootDir>/test/properties/setup.js'],
  // Properties use the processor all the time, so more workers than this would only compete.
  maxWorkers: '50%',
};
