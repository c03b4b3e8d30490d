"""A plugin of the API server that keeps its queue of requests in its own process.

By default that queue listens on a port that is the same for every server of a machine, so only one could run.
"""
from sky.server import plugins
from sky.server.requests.queues import base


class OwnQueue(plugins.BasePlugin):

    def install(self, extension_context):
        extension_context.register_queue_backend_factory(base.LocalQueueFactory())
