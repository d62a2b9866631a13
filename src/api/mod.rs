//! Wire forms of both CronJob APIs, decoded straight into the model, and the bodies to send.
