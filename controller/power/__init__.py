"""Power: the controller's own hand on a node's power, through its management controller (BMC). Off by default.

``Power`` is what the hand (``controller.outward.powering``) needs; Redfish and ipmitool are two ways to have it.
"""
