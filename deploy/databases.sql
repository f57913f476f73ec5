-- One database for each of the three, so that each can be backed up by itself.
CREATE DATABASE prefect;
CREATE DATABASE mlflow;
CREATE DATABASE intake;
